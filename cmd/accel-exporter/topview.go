package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gdamore/tcell/v3"

	"github.com/accel-exporter/accel-exporter/internal/exposition/status"
)

// topView is what the screen shows, and how.
type topView struct {
	where  string      // the picture is from
	local  bool        // that is this machine, which knows the users' names
	wanted chan string // device to get the details of

	view    *status.View // nil before the first
	changed time.Time    // when it came, or last changed
	err     error        // of the latest request
	failing time.Time    // since when requests fail

	shows, device   string
	selected        string // id
	sort            int    // in topColumns; 0 is the order of the status page
	reverse, typing bool
	filter          string
	top, scroll     int              // first row, first line of text
	visible         int              // rows or lines
	rows            []*status.Device // as sorted and filtered
}

func newTopView(where string, local bool) *topView {
	return &topView{where: where, local: local, wanted: make(chan string, 1)}
}

// topColumn is a column of the list of devices.
type topColumn struct {
	column
	cell func(m *topView, d *status.Device) string
	// value orders rows, the largest first; nil orders by the cell.
	value func(d *status.Device) float64
}

// unmeasured stands for a value that is not known.
const unmeasured = "–"

var topColumns = []topColumn{
	{column{title: "DEVICE", least: 8}, func(_ *topView, d *status.Device) string {
		return map[bool]string{true: " "}[d.Part] + cmp.Or(d.Index, strings.TrimPrefix(d.Short, "0000:"))
	}, nil},
	{column{title: "MODEL", least: 7}, func(_ *topView, d *status.Device) string { return d.Model }, nil},
	{column{title: "STATE", least: 8, color: stateColor}, func(_ *topView, d *status.Device) string {
		if d.Age != "" {
			return d.Word + ", " + d.Age + " old"
		}
		return d.Word
	}, func(d *status.Device) float64 { return toneRank[d.Tone] }},
	{column{title: "TEMP", right: true}, func(_ *topView, d *status.Device) string { return d.Temperature.Text }, func(d *status.Device) float64 { return float64(d.Temperature.Value) }},
	{column{title: "POWER", right: true}, func(_ *topView, d *status.Device) string { return d.Power.Text }, func(d *status.Device) float64 { return float64(d.Power.Value) }},
	{column{title: "USE", right: true}, func(_ *topView, d *status.Device) string { return d.Utilization.Text }, func(d *status.Device) float64 { return float64(d.Utilization.Value) }},
	{column{title: "USE, 10 MIN", color: lineColor, rank: 7}, func(_ *topView, d *status.Device) string { return d.Utilization.Bars }, func(d *status.Device) float64 { return float64(d.Utilization.Value) }},
	{column{title: "MEMORY", right: true}, func(_ *topView, d *status.Device) string { return strings.Replace(d.Memory.Text, " of ", "/", 1) }, func(d *status.Device) float64 { return float64(d.Memory.Value) }},
	{column{title: "POD", least: 14}, (*topView).holder, nil},
	{column{title: "FOR", rank: 4}, func(_ *topView, d *status.Device) string {
		return strings.Replace(ofFirst(d).Held, "at least", "≥", 1)
	}, nil},
	{column{title: "IDLE", rank: 1}, func(_ *topView, d *status.Device) string { return ofFirst(d).Idle }, func(d *status.Device) float64 {
		return largest(d, func(a *status.Allocation) float64 { return a.IdleSeconds })
	}},
	{column{title: "IDLE COST", right: true, rank: 3}, func(_ *topView, d *status.Device) string { return ofFirst(d).Cost }, func(d *status.Device) float64 {
		return largest(d, func(a *status.Allocation) float64 { return a.IdleCost })
	}},
	{column{title: "ID", rank: 5}, func(_ *topView, d *status.Device) string { return d.Short }, nil},
	{column{title: "REASON AND ACTION", least: 24, rank: 2}, func(_ *topView, d *status.Device) string {
		return strings.Join(append(slices.Clone(d.Reasons), d.Action), " ")
	}, nil},
}

// toneRank orders tones.
var toneRank = map[string]float64{"bad": 3, "warn": 2, "neutral": 1}

// toneColor is the colour of a tone of the status page.
var toneColor = map[string]string{"good": green, "warn": yellow, "bad": red}

func stateColor(cell string) string {
	word, _, _ := strings.Cut(cell, ",")
	if word == "unknown" {
		return yellow
	}
	return healthColor(word)
}

func lineColor(string) string { return green }

// ofFirst returns the first allocation of a device, or an empty one.
func ofFirst(d *status.Device) status.Allocation {
	if len(d.Holders) == 0 {
		return status.Allocation{}
	}
	return d.Holders[0]
}

func largest(d *status.Device, of func(*status.Allocation) float64) (most float64) {
	for i := range d.Holders {
		most = max(most, of(&d.Holders[i]))
	}
	return most
}

// holder is the pod on a device, else the process, else why there is none.
func (m *topView) holder(d *status.Device) string {
	name, more := d.Free, 0
	switch {
	case len(d.Holders) > 0:
		name, more = d.Holders[0].Pod, len(d.Holders)-1
	case len(d.Clients) > 0:
		c := &d.Clients[0]
		name, more = cmp.Or(c.Command, "process "+strconv.Itoa(c.PID)), len(d.Clients)+d.MoreClients-1
		if c.Job != "" {
			name = "job " + c.Job + " " + name
		} else if c.UID != "" {
			name = userOf(c.UID, m.local) + " " + name
		}
	}
	if more > 0 {
		name += fmt.Sprintf(" and %d", more)
	}
	return name
}

// arrange filters and sorts the devices, and keeps one of them selected.
func (m *topView) arrange() {
	at := m.index()
	m.rows = m.rows[:0]
	words := strings.Fields(strings.ToLower(m.filter))
	for i := range m.view.Devices {
		d := &m.view.Devices[i]
		var text strings.Builder
		for _, c := range topColumns {
			text.WriteString(strings.ToLower(c.cell(m, d)) + "\n")
		}
		text.WriteString(strings.ToLower(d.ID + "\n" + d.PCI + "\n" + d.Class))
		for i := range d.Holders {
			text.WriteString("\n" + d.Holders[i].Pod)
		}
		for i := range d.Clients {
			text.WriteString("\n" + strings.ToLower(d.Clients[i].Command))
		}
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text.String(), w) }) {
			m.rows = append(m.rows, d)
		}
	}
	if m.reverse {
		slices.Reverse(m.rows)
	}
	c := &topColumns[m.sort]
	slices.SortStableFunc(m.rows, func(a, b *status.Device) int {
		x, y := c.cell(m, a), c.cell(m, b)
		switch {
		case m.sort == 0:
			return 0
		case x == "" || y == "":
			return len(y) - len(x) // what is not known is last
		case m.reverse:
			a, b, x, y = b, a, y, x
		}
		if c.value == nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(c.value(b), c.value(a))
	})
	if m.index() < 0 {
		m.selected = ""
		if len(m.rows) > 0 {
			m.selected = m.rows[min(max(at, 0), len(m.rows)-1)].ID
		}
	}
}

// index is the selected row, or -1.
func (m *topView) index() int {
	return slices.IndexFunc(m.rows, func(d *status.Device) bool { return d.ID == m.selected })
}

// draw shows the picture.
func (m *topView) draw(t tcell.Screen, colored bool) {
	width, height := t.Size()
	if m.view != nil {
		m.arrange()
	}
	lines, selected := m.lines(width, height, colored)
	t.Clear()
	for y, line := range lines[:min(len(lines), height)] {
		style := tcell.StyleDefault
		if y == selected {
			style = style.Reverse(true)
			line += strings.Repeat(" ", width)
		}
		put(t, y, line, style)
	}
	t.Show()
}

// printed returns what print writes, by line.
func printed(width int, colored bool, print func(s *screen)) []string {
	var b bytes.Buffer
	print(&screen{Writer: &b, width: width, color: colored})
	if b.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// lines returns the lines of the screen, the last one with the keys, and the line of
// the selected device or -1.
func (m *topView) lines(width, height int, colored bool) (lines []string, selected int) {
	of := func(print func(s *screen)) []string { return printed(width, colored, print) }
	lines, selected = of(m.head), -1
	var keys string
	switch {
	case m.view == nil:
		lines, keys = append(lines, "Waiting for the first sample."), "q quit"
	case m.shows != "":
		keys = "↑↓ scroll  esc back  ? help  q quit"
		text := of(m.text)
		m.visible = max(height-len(lines)-1, 1)
		m.scroll = min(max(m.scroll, 0), max(len(text)-m.visible, 0))
		if end := m.scroll + m.visible; end < len(text) {
			keys = fmt.Sprintf("%d%%  %s", 100*end/len(text), keys)
		}
		lines = append(lines, text[m.scroll:min(m.scroll+m.visible, len(text))]...)
	default:
		keys = "↑↓ select  enter details  / filter  s sort  a alerts  e events  ? help  q quit"
		table, panel := of(func(s *screen) { m.devices(s, m.rows, true) }), of(func(s *screen) { m.panel(s, s.paragraph) })
		space := height - len(lines) - 3 // titles, the blank line before the panel, keys
		if len(panel) > max(space-len(m.rows), space/3) {
			panel = of(func(s *screen) { m.panel(s, s.cut) })
		}
		m.visible = min(len(m.rows), max(space-min(len(panel), space/3), 3))
		m.top = min(max(m.top, m.index()-m.visible+1), max(m.index(), 0), len(m.rows)-m.visible)
		selected = len(lines) + 1 + m.index() - m.top
		if len(m.rows) == 0 {
			table, selected = []string{"", "No device matches the filter."}, -1
			if len(m.view.Devices) == 0 {
				table[1] = "No accelerator was found. The sources above have the reasons."
			}
			m.visible = 1
		}
		lines = append(append(lines, table[0]), table[1+m.top:1+m.top+m.visible]...)
		below := ""
		if len(m.rows) > m.visible {
			below = fmt.Sprintf("%d to %d of %d  ", m.top+1, m.top+m.visible, len(m.rows))
		}
		if m.sort > 0 { // the column may have no room
			below += "sorted by " + topColumns[m.sort].title
		}
		if space -= m.visible; len(panel) > space && space > 0 {
			panel = append(panel[:space-1], fmt.Sprintf("and %d more lines: a alerts, enter details", len(panel)-space+1))
		}
		lines = append(append(lines, below), panel...)
		switch {
		case m.typing:
			keys = "Filter: " + clean(m.filter) + "█  enter keeps it, esc clears it"
		case m.filter != "":
			keys = fmt.Sprintf("Filter: %s (%d of %d devices)  esc clears it  ? help  q quit", clean(m.filter), len(m.rows), len(m.view.Devices))
		}
	}
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	return append(lines[:max(height-1, 0)], of(func(s *screen) { fmt.Fprintln(s, s.paint(faint, keys)) })...), selected
}

// head prints where the picture is from, its age, the headline and the sources.
func (m *topView) head(s *screen) {
	v := m.view
	left, right := "accel-exporter top: "+m.where, ""
	if v != nil {
		left = clean("accel-exporter top: " + v.Node + ", " + m.where)
		right = v.Time.UTC().Format(time.TimeOnly) + " UTC"
		if age := time.Since(m.changed); age >= 5*time.Second {
			right += ", " + short(age) + " old"
		}
	}
	room := s.width - utf8.RuneCountInString(right) - 1
	if n := utf8.RuneCountInString(left); n > room && room > 0 {
		left = string([]rune(left)[:room-1]) + "…"
	}
	fmt.Fprintf(s, "%s%*s\n", s.paint(bold, left), s.width-utf8.RuneCountInString(left), right)
	if err := m.err; err != nil {
		if at := (*url.Error)(nil); errors.As(err, &at) {
			err = at.Err // without the address, which is above
		}
		s.paragraph(red, "", fmt.Sprintf("No answer for %s: %s.", short(time.Since(m.failing)), strings.TrimSuffix(err.Error(), ".")))
	}
	if v == nil || m.shows != "" {
		return
	}
	s.paragraph(toneColor[v.Tone], "", v.Headline)
	var words []string // states of sources, the worst first
	names, tones := map[string][]string{}, map[string]string{}
	for i := range v.Sources {
		x := &v.Sources[i]
		if tones[x.Word] == "" {
			words = append(words, x.Word)
		}
		names[x.Word], tones[x.Word] = append(names[x.Word], x.Name), x.Tone
	}
	slices.SortStableFunc(words, func(a, b string) int {
		return cmp.Or(-cmp.Compare(toneRank[tones[a]], toneRank[tones[b]]), cmp.Compare(a, b))
	})
	used := 0
	for i, w := range words {
		text := clean(strings.Join(names[w], ", "))
		if used += utf8.RuneCountInString(w+text) + 4; i > 0 && used > s.width {
			fmt.Fprintln(s)
			used = utf8.RuneCountInString(w+text) + 4
		}
		fmt.Fprintf(s, "%s: %s  ", s.paint(toneColor[tones[w]], clean(w)), text)
	}
	fmt.Fprintln(s)
}

// devices prints devices, a line each, with a mark at the column that sorts them.
func (m *topView) devices(s *screen, rows []*status.Device, sorted bool) {
	t := &table{}
	for i, c := range topColumns {
		if sorted && i == m.sort && (i > 0 || m.reverse) {
			c.title += map[bool]string{false: "▼", true: "▲"}[m.reverse]
		}
		t.columns = append(t.columns, c.column)
	}
	for _, d := range rows {
		cells := make([]string, len(topColumns))
		for i, c := range topColumns {
			cells[i] = c.cell(m, d)
			// A minor column that is known of no device is left out.
			if cells[i] == "" && i < len(topColumns)-1 && (c.rank == 0 || slices.ContainsFunc(rows, func(d *status.Device) bool { return c.cell(m, d) != "" })) {
				cells[i] = unmeasured
			}
		}
		t.add("", cells...)
	}
	t.print(s)
}

// cut prints the beginning of a text, a line of it.
func (s *screen) cut(color, indent, text string) {
	if r := []rune(text); len(r) > s.width-len(indent) {
		text = string(r[:max(s.width-len(indent)-1, 0)]) + "…"
	}
	s.paragraph(color, indent, text)
}

// panel prints what needs attention, with a function for texts, and the alerts.
func (m *topView) panel(s *screen, print func(color, indent, text string)) {
	v := m.view
	for i := range v.Notices {
		n := &v.Notices[i]
		text := n.Word + ": " + n.What
		for _, more := range []string{n.Why, n.Cure} {
			if more != "" {
				text = strings.TrimSuffix(text, ".") + ". " + more
			}
		}
		print(toneColor[n.Tone], "", text)
	}
	if v.More.Notices > 0 {
		fmt.Fprintf(s, "and %d more\n", v.More.Notices)
	}
	print(yellow, "", v.Uncertain)
	if v.Alerts == nil {
		print(faint, "", "No rules are evaluated on this node, so alerts come from Prometheus only.")
		return
	}
	fmt.Fprintf(s, "%s %d firing, %d pending\n", s.paint(bold, "Alerts:"), v.Alerts.Firing, v.Alerts.Pending)
	t := &table{columns: []column{{color: func(state string) string { return severityColors[state] }}, {}, {}, {rank: 1}, {}, {least: 20}}}
	for i := range v.Alerts.List {
		a := &v.Alerts.List[i]
		on := ""
		for i := range v.Devices {
			if d := &v.Devices[i]; d.ID == a.Device {
				on = d.Class + " " + cmp.Or(d.Index, d.Short)
			}
		}
		t.add("", a.Severity, a.Name, on, alertState(a), short(v.Time.Sub(a.Since)), a.Summary)
	}
	t.print(s)
}

func alertState(a *status.Alert) string {
	if a.Firing {
		return "firing"
	}
	return "pending"
}

// text prints what fills the screen instead of the list.
func (m *topView) text(s *screen) {
	switch m.shows {
	case ofDevice:
		m.details(s)
	case ofAlerts:
		m.section(s, "Alerts")
		m.alerts(s, m.view.Alerts)
	case ofEvents:
		m.section(s, "Latest events")
		m.events(s, m.view.Events)
	case ofHelp:
		m.section(s, "Keys")
		t := table{columns: []column{{}, {}}}
		for _, k := range topKeys {
			t.add("", k[0], k[1])
		}
		t.print(s)
	}
}

var topKeys = [][2]string{
	{"↑ ↓ j k PgUp PgDn g G", "select a device, scroll"},
	{"enter → l", "all details of the device"},
	{"esc ← backspace", "back to the list; in the list, clear the filter"},
	{"/ F3 F4", "filter: words of a row, its id, PCI address, pods and commands"},
	{"s > F6    S <", "sort by the next or previous column, the marked one"},
	{"r I", "reverse the order"},
	{"a", "alerts with their runbooks"},
	{"e", "latest events: Xids, resets, reconfigurations"},
	{"? h F1", "this list"},
	{"q F10 Ctrl-C", "quit"},
	{unmeasured, "a value that was not measured"},
	{"healthy, 9 s old", "the values are of that time ago: the device answers no more"},
}

func (m *topView) section(s *screen, title string) {
	fmt.Fprintf(s, "\n%s\n", s.paint(bold, title))
}

func (m *topView) alerts(s *screen, list *status.Alerts) {
	switch {
	case list == nil:
		s.paragraph("", "", "No rules are evaluated on this node. --rules.builtin of the exporter evaluates the built-in ones, --alertmanager.url also sends their alerts.")
	case len(list.List) == 0:
		s.paragraph(green, "", "No alert fires or is pending.")
	default:
		m.alertList(s, list.List)
	}
}

func (m *topView) alertList(s *screen, list []status.Alert) {
	for i := range list {
		a := &list[i]
		s.alert(a.Severity, a.Name, alertState(a)+" for "+short(m.view.Time.Sub(a.Since)), a.Summary, a.Device, a.Description, s.link(a.Runbook))
	}
}

func (m *topView) events(s *screen, list []status.Event) {
	if len(list) == 0 {
		fmt.Fprintln(s, "None since the exporter started.")
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
		since = " for " + short(m.view.Time.Sub(d.Since))
	}
	s.paragraph(toneColor[d.Tone], "", fmt.Sprintf("%s %s, %s: %s%s", d.Class, cmp.Or(d.Index, d.Short), d.Model, d.Word, since))
	if d.Age != "" {
		s.paragraph(yellow, "", "The values are "+d.Age+" old.")
	}
	if d.Action != "" {
		s.paragraph(bold, "", d.Action+".")
	}
	for i := range d.Reasons {
		r := &d.Reasons[i]
		s.paragraph(toneColor[r.Tone], "  ", r.Word+", "+r.Code)
		s.paragraph("", "    ", r.Text)
		s.paragraph("", "    ", r.Action)
	}
	t := table{columns: []column{{title: "VALUE"}, {title: "NOW", right: true}, {title: "LAST TEN MINUTES", color: lineColor}}}
	for _, c := range d.Charts {
		t.add("", c.Name, cmp.Or(c.Text, unmeasured), c.Bars)
	}
	m.titled(s, "", &t)
	t = table{columns: []column{{title: "POD", least: 12}, {title: "FOR", rank: 1}, {title: "USE"}, {title: "MEMORY"}, {title: "IDLE"}, {title: "IDLE COST"}, {title: "NOTES", least: 10, rank: 2}}}
	for i := range d.Holders {
		a := &d.Holders[i]
		t.add("", a.Pod, a.Held, cmp.Or(a.Utilization, unmeasured), cmp.Or(a.Memory, unmeasured), cmp.Or(a.Idle, unmeasured), cmp.Or(a.Cost, unmeasured), a.Notes)
	}
	m.section(s, "Allocations")
	if len(d.Holders) == 0 {
		s.paragraph("", "", cmp.Or(d.Why, d.Free, "not known"))
	} else {
		t.print(s)
	}
	t = table{columns: []column{{title: "PID"}, {title: "USER"}, {title: "COMMAND", least: 12}, {title: "SLURM JOB"}, {title: "TYPE"}, {title: "USE"}, {title: "MEMORY"}}}
	for i := range d.Clients {
		c := &d.Clients[i]
		t.add("", strconv.Itoa(c.PID), userOf(c.UID, m.local), cmp.Or(c.Command, unmeasured), c.Job, c.Type, cmp.Or(c.Utilization, unmeasured), cmp.Or(c.Memory, unmeasured))
	}
	m.titled(s, "Processes", &t)
	limits, all := readingTable(), readingTable()
	for _, r := range d.Readings {
		all.add("", r.Name, r.Labels, r.Value)
		if strings.Contains(r.Name, "_limit") {
			limits.add("", r.Name, r.Labels, r.Value)
		}
	}
	m.titled(s, "Limits", limits)
	if len(d.Parts) > 0 {
		m.section(s, "Partitions")
		var rows []*status.Device
		for i := range d.Parts {
			rows = append(rows, &d.Parts[i])
		}
		m.devices(s, rows, false)
	}
	if len(d.Alerts) > 0 {
		m.section(s, "Alerts")
		m.alertList(s, d.Alerts)
	}
	m.section(s, "Latest events")
	m.events(s, d.Events)
	t = table{columns: []column{{title: "IDENTITY"}, {least: 20}}}
	for _, f := range d.Facts {
		t.add("", f.Name, f.Value)
	}
	m.titled(s, "", &t)
	m.titled(s, fmt.Sprintf("All %d series", len(d.Readings)), all)
}

func readingTable() *table {
	return &table{columns: []column{{title: "SERIES", least: 30}, {title: "LABELS", least: 12}, {title: "VALUE", right: true}}}
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
