package tools

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v3/color"
	"github.com/gdamore/tcell/v3/vt"
	"golang.org/x/sys/unix"
)

// console is a program on a pseudo-terminal whose screen is emulated.
type console struct {
	master *os.File
	cmd    *exec.Cmd
	screen vt.MockTerm

	mu     sync.Mutex
	change *sync.Cond
	ended  bool
	err    error // of the program
}

// startConsole starts a program on a terminal of a size.
func startConsole(cmd *exec.Cmd, width, height int) (*console, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	t := &console{master: master, cmd: cmd, screen: vt.NewMockTerm(vt.MockOptSize{X: vt.Col(width), Y: vt.Row(height)})}
	t.change = sync.NewCond(&t.mu)
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)}); err != nil {
		return nil, err
	}
	if err := t.screen.Start(); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go t.follow()
	return t, nil
}

// follow shows what the program writes until it ends.
func (t *console) follow() {
	buf := make([]byte, 64<<10)
	for {
		n, err := t.master.Read(buf)
		t.mu.Lock()
		if n > 0 {
			_, _ = t.screen.Write(buf[:n])
		}
		if err != nil { // EIO: the program has closed the terminal
			t.err, t.ended = t.cmd.Wait(), true
		}
		t.change.Broadcast()
		t.mu.Unlock()
		if err != nil {
			t.master.Close()
			_ = t.screen.Stop()
			return
		}
	}
}

// await waits until the screen is as wanted, and returns it. It also returns when the
// program ends or patience is over, with an error.
func (t *console) await(patience time.Duration, wanted func(text string) bool) (string, error) {
	late := false
	timer := time.AfterFunc(patience, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		late = true
		t.change.Broadcast()
	})
	defer timer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		text := t.text()
		switch {
		case wanted(text):
			return text, nil
		case t.ended:
			return text, fmt.Errorf("the program has ended: %v", t.err)
		case late:
			return text, fmt.Errorf("not within %s", patience)
		}
		t.change.Wait()
	}
}

// kill ends the program.
func (t *console) kill() {
	_ = t.cmd.Process.Kill() // it may have ended
	_, _ = t.await(time.Minute, func(string) bool { return t.ended })
}

// text returns the screen.
func (t *console) text() string {
	var b strings.Builder
	for _, row := range t.cells() {
		line := ""
		for _, c := range row {
			line += cellText(c)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func (t *console) cells() (rows [][]vt.Cell) {
	size, _ := t.screen.WindowSize()
	for y := range size.Height {
		row := make([]vt.Cell, size.Width)
		for x := range row {
			row[x] = t.screen.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)})
		}
		rows = append(rows, row)
	}
	return rows
}

func cellText(c vt.Cell) string {
	if c.C == "" {
		return " "
	}
	return c.C
}

// paint is the colour of a picture for one of the palette, "" for the default one.
func paint(c color.Color) string {
	return map[color.Color]string{color.PaletteColor(1): "#ff7b72", color.PaletteColor(2): "#56d364", color.PaletteColor(3): "#e3b341"}[c]
}

// html returns a document with the screen on a dark ground.
func (t *console) html() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	b.WriteString(`<!doctype html><meta charset="utf-8"><style>body{margin:0;background:#0d1117}pre{display:inline-block;margin:0;padding:12px 14px;color:#d1d7e0;font:14px/19px "DejaVu Sans Mono",monospace}b{color:#fff}i{font-style:normal;color:#8b949e}.r{background:#d1d7e0;color:#0d1117}</style><pre>`)
	for _, row := range t.cells() {
		for _, c := range row {
			open, end := "", ""
			switch a := c.S.Attr(); {
			case a&vt.Reverse != 0:
				open, end = `<span class="r">`, "</span>"
			case a&vt.Bold != 0:
				open, end = "<b>", "</b>"
			case a&vt.Dim != 0:
				open, end = "<i>", "</i>"
			case paint(c.S.Fg()) != "":
				open, end = `<span style="color:`+paint(c.S.Fg())+`">`, "</span>"
			}
			b.WriteString(open + html.EscapeString(cellText(c)) + end)
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), " \n") + "</pre>"
}
