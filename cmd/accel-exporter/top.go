package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/color"

	"github.com/accel-exporter/accel-exporter/internal/config"
	"github.com/accel-exporter/accel-exporter/internal/exposition/status"
)

// topCommand is `accel-exporter top`: a live view of a node on a terminal, from a
// running exporter, else from samples of its own.
func topCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var ask askFlags
	f := &flags{interval: time.Second}
	app := kingpin.New("accel-exporter top", "Shows the devices of a node on a terminal: state, use, holders, alerts and what to do; ? lists the keys. It reads a running exporter. Where --url is not given and no exporter runs, it samples this machine itself; the other flags are for that.")
	ask.add(app)
	interval := app.Flag("interval", "Time between two updates.").Default("2s").Duration()
	local := app.Flag("local", "Sample this machine, also where an exporter runs.").Bool()
	f.sources.add(app)
	f.pods.add(app)
	f.judges.add(app)
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	s := (&viewFlags{color: "auto"}).screen(stdout)
	tty, err := tcell.NewStdIoTty()
	if err != nil || s.width == 0 || os.Getenv("TERM") == "dumb" {
		return errors.New("top needs a terminal on standard input and output; accel-exporter who prints the devices, and with --json for programs")
	}
	m := newTopView(ask.url, ask.local())
	get := func(ctx context.Context, device string) (*status.View, error) {
		v := &status.View{}
		return v, ask.get(ctx, "/debug/status", "device="+url.QueryEscape(device), v)
	}
	if !*local {
		var asked *status.View
		_, chosen := given(app, args)["url"]
		asked, err = get(ctx, "")
		if *local = errors.Is(err, syscall.ECONNREFUSED) && !chosen; err != nil && !*local {
			return err
		}
		m.update(asked, err)
	}
	if *local {
		p, err := sampleForTop(f)
		if err != nil {
			return err
		}
		defer p.begin()()
		m = newTopView("this machine, sampled by top", true)
		get = func(_ context.Context, device string) (*status.View, error) { return p.page.View(device), nil }
	}
	return m.run(ctx, tty, s.color, *interval, get)
}

// sampleForTop returns a program that samples this machine for the view.
func sampleForTop(f *flags) (*program, error) {
	if err := errors.Join(f.sources.check(), f.pods.check()); err != nil {
		return nil, err
	}
	cfg := config.Default()
	allocs, err := openPods(&f.pods, f.sources.procfs, cfg.Allocation, nil)
	if err != nil {
		return nil, err
	}
	j, err := openJudges(&f.judges, f.sources.procfs, allocs.judge)
	if err != nil {
		return nil, err
	}
	p := sampling(f, cfg, allocs)
	allocs.log = p.log
	j.add(p.sampler)
	p.page = p.newStatusPage()
	p.addSources()
	return p, nil
}

// topAnswer is what a poll returned.
type topAnswer struct {
	view *status.View
	err  error
}

// run shows the view until it is quit or ctx is done.
func (m *topView) run(ctx context.Context, tty tcell.Tty, colored bool, interval time.Duration, get func(ctx context.Context, device string) (*status.View, error)) error {
	terminal, err := tcell.NewTerminfoScreenFromTty(tty, tcell.OptNegotiation(false), tcell.OptSanitizeContent(true))
	if err != nil {
		return err
	}
	if err := terminal.Init(); err != nil {
		return fmt.Errorf("the terminal cannot be used: %w", err)
	}
	defer terminal.Fini()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := make(chan topAnswer)
	go func() {
		device := ""
		for {
			v, err := get(ctx, device)
			select {
			case answers <- topAnswer{v, err}:
			case <-ctx.Done():
				return
			}
			select {
			case device = <-m.wanted:
			case <-time.After(interval):
			case <-ctx.Done():
				return
			}
		}
	}()
	tick := time.NewTicker(time.Second) // ages grow
	defer tick.Stop()
	for {
		m.draw(terminal, colored)
		select {
		case event := <-terminal.EventQ():
			switch e := event.(type) {
			case *tcell.EventKey:
				if m.key(e) {
					return nil
				}
			case *tcell.EventResize:
				terminal.Sync()
			}
		case a := <-answers:
			m.update(a.view, a.err)
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// update takes an answer. Without one the last picture stays, with its age.
func (m *topView) update(v *status.View, err error) {
	if m.err = err; err != nil {
		m.failing = cmp.Or(m.failing, time.Now())
		return
	}
	m.failing = time.Time{}
	if v == nil || v.Time.IsZero() {
		return // nothing was sampled yet
	}
	if m.view == nil || !v.Time.Equal(m.view.Time) {
		m.changed = time.Now()
	}
	m.view = v
}

// want requests the picture with a device, "" for none, at once.
func (m *topView) want(device string) {
	m.device = device
	select {
	case <-m.wanted: // an older request
	default:
	}
	m.wanted <- device
}

// Names of what the screen shows; "" is the list of devices.
const (
	ofDevice = "device"
	ofAlerts = "alerts"
	ofEvents = "events"
	ofHelp   = "help"
)

// key processes a key and reports whether it quits.
func (m *topView) key(e *tcell.EventKey) (quit bool) {
	k, text := e.Key(), e.Str()
	if k != tcell.KeyRune {
		text = ""
	}
	if k == tcell.KeyCtrlC || k == tcell.KeyF10 {
		return true
	}
	if m.typing {
		switch k {
		case tcell.KeyEnter:
			m.typing = false
		case tcell.KeyEsc:
			m.typing, m.filter = false, ""
		case tcell.KeyBackspace:
			if r := []rune(m.filter); len(r) > 0 {
				m.filter = string(r[:len(r)-1])
			}
		default:
			m.filter += text
		}
		return false
	}
	move, page := 0, max(m.visible-1, 1)
	switch {
	case k == tcell.KeyUp, text == "k":
		move = -1
	case k == tcell.KeyDown, text == "j":
		move = 1
	case k == tcell.KeyPgUp, k == tcell.KeyCtrlB:
		move = -page
	case k == tcell.KeyPgDn, k == tcell.KeyCtrlF, text == " ":
		move = page
	case k == tcell.KeyHome, text == "g":
		move = -1 << 20
	case k == tcell.KeyEnd, text == "G":
		move = 1 << 20
	case text == "q":
		return true
	case k == tcell.KeyEsc, k == tcell.KeyLeft, k == tcell.KeyBackspace:
		if m.shows == "" {
			m.filter = ""
		}
		if m.shows == ofDevice {
			m.want("")
		}
		m.shows = ""
	case text == "?", text == "h", k == tcell.KeyF1:
		m.open(ofHelp)
	case text == "a":
		m.open(ofAlerts)
	case text == "e":
		m.open(ofEvents)
	case m.shows != "":
	case k == tcell.KeyEnter, k == tcell.KeyRight, text == "l":
		if m.selected != "" {
			m.open(ofDevice)
			m.want(m.selected)
		}
	case text == "/", k == tcell.KeyF3, k == tcell.KeyF4:
		m.typing = true
	case text == "s", text == ">", k == tcell.KeyF6:
		m.sort = (m.sort + 1) % len(topColumns)
	case text == "S", text == "<":
		m.sort = (m.sort + len(topColumns) - 1) % len(topColumns)
	case text == "r", text == "I":
		m.reverse = !m.reverse
	}
	if m.shows != "" {
		m.scroll += move
	} else if move != 0 && len(m.rows) > 0 {
		at := min(max(m.index()+move, 0), len(m.rows)-1)
		m.selected = m.rows[at].ID
	}
	return false
}

func (m *topView) open(what string) {
	if m.shows == ofDevice && what != ofDevice {
		m.want("")
	}
	m.shows, m.scroll = what, 0
}

// put writes a line of a screen: text, and the colours of paint.
func put(t tcell.Screen, y int, line string, base tcell.Style) {
	x, style := 0, base
	for i, part := range strings.Split(line, "\x1b[") {
		if i > 0 {
			code, rest, _ := strings.Cut(part, "m")
			part = rest
			switch code {
			case bold:
				style = base.Bold(true)
			case faint:
				style = base.Dim(true)
			case red, yellow, green:
				style = base.Foreground(color.PaletteColor(int(code[1] - '0')))
			default:
				style = base
			}
		}
		for n := 0; part != ""; x += n {
			part, n = t.Put(x, y, part, style)
			if n == 0 {
				break // beyond the edge
			}
		}
	}
}
