package collector

import (
	"slices"
	"strings"
)

// maxCells bounds the series of one family that cells create.
const maxCells = 2000

// cells are the counter series of one family, in order of appearance. A library
// that returns endless values must not create endless series: beyond maxCells,
// series share one for each value of their first label.
type cells struct {
	metric *Metric
	index  map[string]int
	list   []Reading
}

func (c *cells) add(by float64, labels ...string) { c.at(labels).Value += by }

func (c *cells) has(labels ...string) bool {
	_, ok := c.index[strings.Join(labels, "\xff")]
	return ok
}

func (c *cells) at(labels []string) *Reading {
	key := strings.Join(labels, "\xff")
	i, ok := c.index[key]
	if !ok && len(c.list) >= maxCells {
		labels = slices.Clone(labels)
		for n := range labels[1:] {
			labels[n+1] = "other"
		}
		key = strings.Join(labels, "\xff")
		i, ok = c.index[key]
	}
	if !ok {
		if c.index == nil {
			c.index = map[string]int{}
		}
		i = len(c.list)
		c.index[key] = i
		c.list = append(c.list, Reading{Metric: c.metric, Labels: labels})
	}
	return &c.list[i]
}
