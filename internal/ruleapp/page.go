package ruleapp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/internal/ruleproc"
)

// pageTimeout is how long the exporter may take to write its page.
const pageTimeout = 10 * time.Second

// page is the exporter's page as the rules read it. It implements
// prometheus.TransactionalGatherer.
type page struct {
	parent *ruleproc.Parent
	parser expfmt.TextParser
}

func newPage(p *ruleproc.Parent) *page {
	return &page{parent: p, parser: expfmt.NewTextParser(model.UTF8Validation)}
}

// Gather asks the exporter. What it returns belongs to the caller.
func (p *page) Gather() ([]*dto.MetricFamily, func(), error) {
	ctx, cancel := context.WithTimeout(context.Background(), pageTimeout)
	defer cancel()
	text, missing := p.parent.Page(ctx)
	families, err := p.parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, func() {}, errors.Join(missing, fmt.Errorf("page: %w", err))
	}
	// The order decides what a limit leaves out.
	list := make([]*dto.MetricFamily, 0, len(families))
	for _, name := range slices.Sorted(maps.Keys(families)) {
		list = append(list, families[name])
	}
	return list, func() {}, missing
}
