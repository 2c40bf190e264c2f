package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kingpin/v2"
	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/color"

	"github.com/accel-exporter/accel-exporter/internal/status"
)

// topCommand is `accel-exporter top`: the frame of who, live on a terminal.
func topCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var ask askFlags
	app := kingpin.New("accel-exporter top", "Shows the devices of a running exporter live on a terminal: what who prints, and all about one device, alerts and events. The last line of the screen has the keys.")
	ask.add(app)
	interval := app.Flag("interval", "Time between two updates.").Default("2s").Duration()
	what := app.Arg("WHAT", whatHelp).Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	s := (&viewFlags{color: "auto"}).screen(stdout)
	tty, err := tcell.NewStdIoTty()
	if err != nil || s.width == 0 || os.Getenv("TERM") == "dumb" {
		return errors.New("top needs a terminal on standard input and output; accel-exporter who prints the same once, and with --json for programs")
	}
	first, err := ask.getStatus(ctx, "")
	if err != nil {
		return err
	}
	m := newTopView(ask.url, s.color)
	m.frame = frame{local: ask.local(), filters: *what}
	m.update(first, nil)
	return m.run(ctx, tty, *interval, ask.getStatus)
}

// topView is what the screen shows, and how.
type topView struct {
	frame
	where  string      // the picture is from
	color  bool        // use colours
	wanted chan string // device to get the details of

	changed time.Time // when the view came, or last changed
	err     error     // of the latest request
	failing time.Time // since when requests fail

	shows, device string // a text in place of the devices; the device that it is about
	selected      string // id
	top, visible  int    // first line that is visible, and the number of them
}

func newTopView(where string, color bool) *topView {
	return &topView{where: where, color: color, wanted: make(chan string, 1)}
}

// topAnswer is what a poll returned.
type topAnswer struct {
	view *status.View
	err  error
}

// run shows the view until it is quit or ctx is done.
func (m *topView) run(ctx context.Context, tty tcell.Tty, interval time.Duration, get func(ctx context.Context, device string) (*status.View, error)) error {
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
		m.draw(terminal)
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
	if v.Time.IsZero() {
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

// Names of the texts in place of the devices.
const (
	showDevice = "device"
	showAlerts = "alerts"
	showEvents = "events"
)

// key processes a key and reports whether it quits.
func (m *topView) key(e *tcell.EventKey) (quit bool) {
	k, text := e.Key(), e.Str()
	if k != tcell.KeyRune {
		text = ""
	}
	if k == tcell.KeyCtrlC {
		return true
	}
	move := 0
	switch {
	case k == tcell.KeyUp, text == "k":
		move = -1
	case k == tcell.KeyDown, text == "j":
		move = 1
	case k == tcell.KeyPgUp:
		move = -max(m.visible-1, 1)
	case k == tcell.KeyPgDn, text == " ":
		move = max(m.visible-1, 1)
	case k == tcell.KeyHome, text == "g":
		move = -1 << 20
	case k == tcell.KeyEnd, text == "G":
		move = 1 << 20
	case text == "q":
		return true
	case k == tcell.KeyEsc, k == tcell.KeyLeft, k == tcell.KeyBackspace:
		m.open("")
	case text == "a":
		m.open(showAlerts)
	case text == "e":
		m.open(showEvents)
	case m.shows != "":
	case k == tcell.KeyEnter, k == tcell.KeyRight, text == "l":
		if m.selected != "" {
			m.open(showDevice)
			m.want(m.selected)
		}
	}
	if m.shows != "" {
		m.top += move
	} else if move != 0 && m.view != nil {
		devices := m.devices()
		if at := min(max(m.index(devices)+move, 0), len(devices)-1); at >= 0 {
			m.selected = devices[at].ID
		}
	}
	return false
}

// open shows a text, "" for the devices.
func (m *topView) open(what string) {
	if m.shows == showDevice && what != showDevice {
		m.want("")
	}
	m.shows, m.top = what, 0
}

// index is the place of the selected device, or -1.
func (m *topView) index(devices []*status.Device) int {
	return slices.IndexFunc(devices, func(d *status.Device) bool { return d.ID == m.selected })
}

// draw shows the picture.
func (m *topView) draw(t tcell.Screen) {
	width, height := t.Size()
	lines, ids := m.picture(width, height)
	t.Clear()
	for y, line := range lines[:min(len(lines), height)] {
		style := tcell.StyleDefault
		if ids[y] != "" && ids[y] == m.selected {
			style = style.Reverse(true)
			line += strings.Repeat(" ", width)
		}
		put(t, y, line, style)
	}
	t.Show()
}

// picture returns the lines of the screen, with the device of each: the origin, a part
// of the devices or of the text, and the keys.
func (m *topView) picture(width, height int) (lines, ids []string) {
	of := func(write func(s *screen)) *frameLines {
		f := &frameLines{}
		write(&screen{Writer: f, width: width, color: m.color})
		return f
	}
	head, body := of(m.head), of(m.body)
	if m.shows == "" && m.view != nil {
		if devices := m.devices(); m.index(devices) < 0 {
			m.selected = ""
			if len(devices) > 0 {
				m.selected = devices[0].ID
			}
		}
	}
	m.visible = max(height-len(head.lines)-1, 1)
	if first := slices.Index(body.ids, m.selected); m.shows == "" && first >= 0 && m.selected != "" {
		last := first
		for last+1 < len(body.ids) && body.ids[last+1] == m.selected {
			last++
		}
		m.top = min(max(m.top, last-m.visible+1), first)
		if first == slices.IndexFunc(body.ids, func(id string) bool { return id != "" }) {
			m.top = max(last-m.visible+1, 0) // with what is above the first device
		}
	}
	m.top = min(max(m.top, 0), max(len(body.lines)-m.visible, 0))
	end := min(m.top+m.visible, len(body.lines))
	lines, ids = append(head.lines, body.lines[m.top:end]...), append(head.ids, body.ids[m.top:end]...)
	for len(lines) < height-1 {
		lines, ids = append(lines, ""), append(ids, "")
	}
	keys := of(func(s *screen) { fmt.Fprintln(s, s.paint(faint, m.keys(end, len(body.lines)))) })
	return append(lines, keys.lines...), append(ids, "")
}

// keys returns the last line.
func (m *topView) keys(end, all int) string {
	text := ""
	if end < all {
		text = fmt.Sprintf("%d%%  ", 100*end/all)
	}
	switch {
	case m.view == nil:
		return "q quit"
	case m.shows != "":
		return text + "↑↓ PgUp PgDn scroll  esc back  q quit"
	case len(m.filters) > 0:
		text += fmt.Sprintf("%d of %d devices  ", len(m.devices()), len(m.view.Devices))
	}
	return text + "↑↓ select  enter details  a alerts  e events  q quit"
}

// head prints where the picture is from and its age.
func (m *topView) head(s *screen) {
	left, right := "accel-exporter top: "+m.where, ""
	if v := m.view; v != nil {
		left = clean("accel-exporter top: " + v.Node + ", " + m.where)
		right = v.Time.UTC().Format(time.TimeOnly) + " UTC"
		if age := time.Since(m.changed); age >= 5*time.Second {
			right += ", " + status.Ago(age) + " old"
		}
	}
	room := s.width - utf8.RuneCountInString(right) - 1
	if r := []rune(left); len(r) > room && room > 0 {
		left = string(r[:room-1]) + "…"
	}
	fmt.Fprintf(s, "%s%*s\n", s.paint(bold, left), s.width-utf8.RuneCountInString(left), right)
	if err := m.err; err != nil {
		if at := (*url.Error)(nil); errors.As(err, &at) {
			err = at.Err // without the address, which is above
		}
		s.paragraph(red, "", fmt.Sprintf("No answer for %s: %s.", status.Ago(time.Since(m.failing)), strings.TrimSuffix(err.Error(), ".")))
	}
}

// body prints the devices, or the text in their place.
func (m *topView) body(s *screen) {
	switch {
	case m.view == nil:
		fmt.Fprintln(s, "Waiting for the first sample.")
	case m.shows == "":
		m.print(s)
	case m.shows == showDevice:
		m.details(s)
	case m.shows == showAlerts:
		m.section(s, "Alerts")
		if m.view.Alerts == nil {
			s.paragraph("", "", "No rules are evaluated on this node. --rules.builtin of the exporter evaluates the built-in ones, --alertmanager.url also sends their alerts.")
		} else {
			s.alerts(m.view.Alerts, m.view.Time)
		}
	default:
		m.section(s, "Latest events")
		m.events(s, m.view.Events)
	}
}

func (m *topView) section(s *screen, title string) {
	fmt.Fprintf(s, "\n%s\n", s.paint(bold, title))
}

func (m *topView) events(s *screen, list []status.Event) {
	if len(list) == 0 {
		fmt.Fprintln(s, "None. Of the time before the exporter started, only those of the kernel log are known.")
	}
	for i := range list {
		e := &list[i]
		past := ""
		if e.Past {
			past = ", before the exporter started"
		}
		s.paragraph(toneColor[e.Tone], "", fmt.Sprintf("%s device %s: %s (%s%s)", e.Time.UTC().Format(time.DateTime), e.Index, e.What, e.Sources, past))
		s.paragraph("", "    ", e.Meaning)
		s.paragraph("", "    ", e.Detail)
	}
}

// details prints all that is known of a device.
func (m *topView) details(s *screen) {
	d := m.view.Device
	if d == nil || d.ID != m.device {
		text := "Waiting for the details."
		if !slices.ContainsFunc(m.view.Devices, func(d status.Device) bool { return d.ID == m.device }) {
			text = "The device is not listed any more."
		}
		fmt.Fprintln(s, text)
		return
	}
	since := ""
	if !d.Since.IsZero() {
		since = " for " + status.Ago(m.view.Time.Sub(d.Since))
	}
	s.paragraph(toneColor[d.Tone], "", fmt.Sprintf("%s %s, %s: %s%s", d.Class, cmp.Or(d.Index, d.Short), d.Model, d.Word, since))
	s.remedy(d.Action, d.Doc)
	for i := range d.Reasons {
		r := &d.Reasons[i]
		s.paragraph(toneColor[r.Tone], "  ", r.Word+", "+r.Code)
		s.paragraph("", "    ", strings.TrimSpace(r.Text+" "+r.Action))
	}
	t := &table{columns: []column{{title: "VALUE"}, {title: "NOW", right: true}, {title: "LAST TEN MINUTES", color: lineColor}}}
	for _, c := range d.Charts {
		t.add("", c.Name, cmp.Or(c.Text, unmeasured), c.Bars)
	}
	m.titled(s, "", t)
	fmt.Fprintln(s)
	wide := &frame{view: m.view, local: m.local, wide: true}
	list := []*status.Device{&d.Device}
	for i := range d.Parts {
		list = append(list, &d.Parts[i])
	}
	wide.table(list).print(s)
	t = &table{columns: []column{{title: "PID"}, {title: "USER"}, {title: "COMMAND", least: 12}, {title: "SLURM JOB"}, {title: "TYPE"}, {title: "USE"}, {title: "MEMORY"}}}
	for i := range d.Clients {
		c := &d.Clients[i]
		t.add("", strconv.Itoa(c.PID), m.userOf(c.UID), cmp.Or(c.Command, unmeasured), c.Job, c.Type, cmp.Or(c.Utilization, unmeasured), cmp.Or(c.Memory, unmeasured))
	}
	m.titled(s, "Processes", t)
	if len(d.Alerts) > 0 {
		m.section(s, "Alerts")
		for i := range d.Alerts {
			s.alert(&d.Alerts[i], m.view.Time)
		}
	}
	m.section(s, "Latest events")
	m.events(s, d.Events)
	t = &table{columns: []column{{title: "IDENTITY"}, {least: 20}}}
	for _, f := range d.Facts {
		t.add("", f.Name, f.Value)
	}
	m.titled(s, "", t)
	t = &table{columns: []column{{title: "SERIES", least: 30}, {title: "LABELS", least: 12}, {title: "VALUE", right: true}}}
	for _, r := range d.Readings {
		t.add("", r.Name, r.Labels, r.Value)
	}
	m.titled(s, fmt.Sprintf("All %d series", len(d.Readings)), t)
}

// titled prints a table that has rows.
func (m *topView) titled(s *screen, title string, t *table) {
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintln(s)
	if title != "" {
		fmt.Fprintln(s, s.paint(bold, title))
	}
	t.print(s)
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
