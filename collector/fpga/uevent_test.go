package fpga

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const busAdd = "add@/devices/pci0000:00/0000:00:01.0/0000:01:00.0\x00ACTION=add\x00DEVPATH=/devices/pci0000:00/0000:00:01.0/0000:01:00.0\x00SUBSYSTEM=pci\x00SEQNUM=4711\x00"

// TestUevents: the kernel's messages are parsed, others are not.
func TestUevents(t *testing.T) {
	for msg, want := range map[string]struct {
		ok, matters bool
	}{
		busAdd: {true, true},
		"remove@/devices/platform/cu.u.1\x00SUBSYSTEM=platform\x00":    {true, true},
		"change@/devices/pci0000:00/0000:00:01.0\x00SUBSYSTEM=pci\x00": {true, false},
		"add@/devices/virtual/net/veth0\x00SUBSYSTEM=net\x00":          {true, false},
		"libudev\x00\xfe\xed\xca\xfe":                                  {}, "": {}, "add": {}, "add@\x00": {}, "@/x\x00": {}, "add@/x": {},
	} {
		e, ok := parseUevent([]byte(msg))
		if ok != want.ok || e.matters() != want.matters {
			t.Errorf("%q: %+v, %v", msg, e, ok)
		}
	}
}

// messages is a socket of messages.
type messages struct{ c chan string }

func (m messages) Read(b []byte) (int, error) {
	s, ok := <-m.c
	switch {
	case !ok:
		return 0, os.ErrClosed
	case s == "lost":
		return 0, io.ErrNoProgress
	}
	return copy(b, s), nil
}

func (m messages) Close() error { close(m.c); return nil }

// TestListen: simultaneous events wake once, irrelevant ones do not, and lost
// ones do.
func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := 0
		m := messages{make(chan string)}
		l := listen(m, func() { woken++ })
		for step, c := range []struct {
			send []string
			want int
		}{
			{[]string{busAdd}, 1},
			{[]string{"add@/x\x00SUBSYSTEM=net\x00", "libudev\x00"}, 1},
			{[]string{strings.Replace(busAdd, "add@", "remove@", 1), busAdd, busAdd}, 3}, // one at once, one later
			{[]string{"lost"}, 4},
		} {
			for _, s := range c.send {
				m.c <- s
			}
			time.Sleep(3 * calm)
			synctest.Wait()
			if woken != c.want {
				t.Errorf("step %d: woken %d times, want %d", step, woken, c.want)
			}
		}
		l.close()
	})
}

// TestSystemUevents: the socket of the kernel can be listened to and closed.
func TestSystemUevents(t *testing.T) {
	from, err := openUevents()
	if err != nil {
		t.Skip(err)
	}
	listen(from, func() {}).close()
}

// FuzzUevent: a message is the kernel's or none.
func FuzzUevent(f *testing.F) {
	f.Add([]byte(busAdd))
	f.Add([]byte("libudev\x00"))
	f.Add([]byte("add@/\x00SUBSYSTEM=\x00SUBSYSTEM=pci"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		e, ok := parseUevent(msg)
		if ok != (e.action != "") || ok && !strings.HasPrefix(string(msg), e.action+"@"+e.path+"\x00") {
			t.Errorf("%q: %+v", msg, e)
		}
	})
}
