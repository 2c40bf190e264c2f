package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Spark is a line of the last ten minutes.
type Spark struct {
	// Path is the d of an SVG path: x is the sample, y grows downwards from 0 to
	// Height.
	Path   string
	Width  int
	Height int
	// Text is the line in words.
	Text string
}

// grid is the resolution of a line: the width of a sample and the height.
type grid struct{ step, height int }

var small, large = grid{1, 16}, grid{5, 80}

// spark draws samples on a scale from low to high. A sample that is unknown is a
// gap. It returns nil for fewer than two samples.
func spark(at []float32, low, high float32, grid grid, text func(float32) string) *Spark {
	count, first := 0, float32(0)
	least, most := nan, nan
	for _, v := range at {
		if !known(v) {
			continue
		}
		if count++; count == 1 {
			first, least, most = v, v, v
		}
		least, most = min(least, v), max(most, v)
	}
	if count < 2 {
		return nil
	}
	if !(high > low) {
		low, high = 0, most
	}
	if !(high > low) {
		high = low + 1
	}
	var b strings.Builder
	last, level, pen := 0, 0, false // level is the length of the level line to draw
	flat := func() {
		if level > 0 {
			b.WriteString("h" + strconv.Itoa(level*grid.step))
		}
		level = 0
	}
	for i, v := range at {
		if !known(v) {
			flat()
			pen = false
			continue
		}
		y := grid.height - int((min(max(v, low), high)-low)/(high-low)*float32(grid.height)+0.5)
		switch {
		case !pen:
			fmt.Fprintf(&b, "M%d %dh0", i*grid.step, y)
		case y == last:
			level++
		default:
			flat()
			fmt.Fprintf(&b, "l%d %d", grid.step, y-last)
		}
		last, pen = y, true
	}
	flat()
	words := "10 min: " + text(first)
	if least != most {
		words = "10 min: " + text(least) + " to " + text(most)
	}
	return &Spark{Path: b.String(), Width: (len(at) - 1) * grid.step, Height: grid.height, Text: words}
}

// barsWidth is the number of characters of bars.
const barsWidth = samples / 3

// bars draws samples on a scale from low to high with characters of eight heights,
// each the highest of three samples. A sample that is unknown is a blank.
func bars(at []float32, low, high float32) string {
	if !(high > low) {
		low, high = 0, 1
		for _, v := range at {
			if known(v) {
				high = max(high, v)
			}
		}
	}
	out, measured := make([]rune, 0, barsWidth), false
	for of := range slices.Chunk(at, 3) {
		top := nan
		for _, v := range of {
			if known(v) && !(v <= top) {
				top = v
			}
		}
		c := ' '
		if known(top) {
			c, measured = '▁'+rune(min(max((top-low)/(high-low), 0), 1)*7+0.5), true
		}
		out = append(out, c)
	}
	if !measured {
		return ""
	}
	return string(out)
}
