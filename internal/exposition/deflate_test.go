package exposition

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"math/bits"
	"testing"
)

// Every length and distance that deflate has, read back by the standard
// library.
func TestEverySymbol(t *testing.T) {
	h := new(histogram)
	h.literal['a'] = 1 << 20
	d := new(deflate)
	var out bytes.Buffer
	d.begin(&out, func(int) {}, &template{codes: newCodes(h)}, 0)

	var want []byte
	literals := func(b ...byte) {
		d.reserve(len(b))
		d.literals(b)
		want = append(want, b...)
	}
	match := func(length, distance int) {
		d.reserve(length)
		d.match(length, distance)
		for range length {
			want = append(want, want[len(want)-distance])
		}
	}
	for i := range window {
		literals(byte(i), byte(i>>8), byte(bits.Reverse16(uint16(i))))
	}
	for n := minMatch; n <= maxMatch; n++ {
		match(n, n)
	}
	for distance := 1; distance <= window; distance = distance*9/8 + 1 {
		match(17, distance)
	}
	match(maxMatch, window)
	d.sum(want)
	if err := d.end(); err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Error("read back otherwise")
	}
}

// Frequencies like Fibonacci's numbers make the longest codes there can be.
func TestCodesAreShortEnough(t *testing.T) {
	h := new(histogram)
	x, y := uint32(1), uint32(1)
	for i := range 44 {
		h.literal[i] = x
		if i < distances {
			h.distance[i] = x
		}
		x, y = y, x+y
	}
	d := new(deflate)
	var out bytes.Buffer
	d.begin(&out, func(int) {}, &template{codes: newCodes(h)}, 0)
	want := make([]byte, 256)
	for i := range want {
		want[i] = byte(i)
	}
	d.foreign(want)
	d.sum(want)
	if err := d.end(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(flate.NewReader(bytes.NewReader(out.Bytes()[len(gzipHeader):])))
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("%v: read back otherwise", err)
	}
}

func FuzzForeign(f *testing.F) {
	f.Add([]byte("# HELP go_threads Number of threads.\n# TYPE go_threads gauge\ngo_threads 9\n"), uint16(700))
	f.Add([]byte{0}, uint16(60000))
	f.Fuzz(func(t *testing.T, b []byte, repeat uint16) {
		b = bytes.Repeat(b, 1+int(repeat)/(len(b)+1))
		d := new(deflate)
		var out bytes.Buffer
		d.begin(&out, func(int) {}, &template{codes: newCodes(new(histogram))}, 0)
		d.foreign(b)
		d.sum(b)
		if err := d.end(); err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(b, got) {
			t.Errorf("%v: %q read back as %q", err, b, got)
		}
	})
}
