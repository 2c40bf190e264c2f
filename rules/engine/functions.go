package engine

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	humanize "github.com/prometheus/common/helpers/templates"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/strutil"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// seriesValue is one series of the result of a query in a template.
type seriesValue struct {
	Labels map[string]string
	Value  float64
}

func answered(v promql.Vector) []*seriesValue {
	all := make([]*seriesValue, len(v))
	for i, s := range v {
		all[i] = &seriesValue{Labels: s.Metric.Map(), Value: s.F}
	}
	return all
}

// functions are the functions of Prometheus' templates (prometheus.io/docs,
// template reference). Queries and the current time come from x.
func (x *expander) functions() template.FuncMap {
	return template.FuncMap{
		"query": x.query,
		"now":   func() float64 { return float64(x.at.UnixMilli()) / 1000 },

		"first":       first,
		"label":       func(name string, s *seriesValue) string { return s.Labels[name] },
		"value":       func(s *seriesValue) any { return s.Value },
		"strvalue":    func(s *seriesValue) string { return s.Labels["__value__"] },
		"sortByLabel": sortByLabel,
		"args":        arguments,

		"match":          regexp.MatchString,
		"reReplaceAll":   replaceAll,
		"title":          func(s string) string { return cases.Title(language.AmericanEnglish, cases.NoLower).String(s) },
		"toUpper":        strings.ToUpper,
		"toLower":        strings.ToLower,
		"safeHtml":       func(s string) string { return s }, // alerts are not HTML
		"stripPort":      stripPort,
		"stripDomain":    stripDomain,
		"urlQueryEscape": url.QueryEscape,

		"externalURL": x.url.String,
		"pathPrefix":  func() string { return x.url.Path },
		"graphLink":   strutil.GraphLinkForExpression,
		"tableLink":   strutil.TableLinkForExpression,

		"humanize":           humanizeNumber,
		"humanize1024":       humanize1024,
		"humanizePercentage": humanizePercentage,
		"humanizeDuration":   humanize.HumanizeDuration,
		"humanizeTimestamp":  humanize.HumanizeTimestamp,
		"toTime":             toTime,
		"toDuration":         toDuration,
		"parseDuration":      parseDuration,
	}
}

func first(all []*seriesValue) (*seriesValue, error) {
	if len(all) == 0 {
		return nil, errors.New("first() of no series")
	}
	return all[0], nil
}

func sortByLabel(name string, all []*seriesValue) []*seriesValue {
	slices.SortStableFunc(all, func(a, b *seriesValue) int { return strings.Compare(a.Labels[name], b.Labels[name]) })
	return all
}

// arguments packs values that a template passes to another template.
func arguments(values ...any) map[string]any {
	all := make(map[string]any, len(values))
	for i, v := range values {
		all[fmt.Sprint("arg", i)] = v
	}
	return all
}

func replaceAll(pattern, with, text string) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	return re.ReplaceAllString(text, with), nil
}

func stripPort(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// stripDomain keeps the port. An IP address has no domain.
func stripDomain(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = address, ""
	}
	if net.ParseIP(host) != nil {
		return address
	}
	host, _, _ = strings.Cut(host, ".")
	if port != "" {
		return net.JoinHostPort(host, port)
	}
	return host
}

// humanizeNumber writes a number with a decimal prefix.
func humanizeNumber(i any) (string, error) {
	v, err := humanize.ConvertToFloat(i)
	switch a := math.Abs(v); {
	case err != nil:
		return "", err
	case a == 0 || math.IsInf(v, 0):
		return short(v, ""), nil
	case a < 1:
		return scaled(v, "munpfazy", func(v float64) (float64, bool) { return v * 1000, math.Abs(v) < 1 }), nil
	}
	return scaled(v, "kMGTPEZY", func(v float64) (float64, bool) { return v / 1000, math.Abs(v) >= 1000 }), nil
}

// humanize1024 writes a number with a binary prefix.
func humanize1024(i any) (string, error) {
	v, err := humanize.ConvertToFloat(i)
	switch {
	case err != nil:
		return "", err
	case math.IsInf(v, 0):
		return short(v, ""), nil
	}
	text := scaled(v, "kMGTPEZY", func(v float64) (float64, bool) { return v / 1024, math.Abs(v) >= 1024 })
	if math.Abs(v) >= 1024 {
		text += "i"
	}
	return text, nil
}

// scaled moves to the next prefix while next reports that v is out of range.
func scaled(v float64, prefixes string, next func(float64) (float64, bool)) string {
	prefix := ""
	for _, p := range prefixes {
		smaller, out := next(v)
		if !out {
			break
		}
		v, prefix = smaller, string(p)
	}
	return short(v, prefix)
}

func short(v float64, prefix string) string { return fmt.Sprintf("%.4g%s", v, prefix) }

func humanizePercentage(i any) (string, error) {
	v, err := humanize.ConvertToFloat(i)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%.4g%%", v*100), nil
}

func toTime(i any) (*time.Time, error) {
	v, err := humanize.ConvertToFloat(i)
	if err != nil {
		return nil, err
	}
	return humanize.FloatToTime(v)
}

func toDuration(i any) (*time.Duration, error) {
	v, err := humanize.ConvertToFloat(i)
	if err != nil {
		return nil, err
	}
	d := time.Duration(v * float64(time.Second))
	return &d, nil
}

func parseDuration(text string) (float64, error) {
	d, err := model.ParseDurationAllowNegative(text)
	if err != nil {
		return 0, err
	}
	return float64(d) / float64(time.Second), nil
}
