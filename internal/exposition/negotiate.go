package exposition

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
)

// agreement is the result of content negotiation. A scraper sends the same
// headers each time, so the last agreement is kept.
type agreement struct {
	accept, encoding string
	format           format // formatOther where promhttp must answer
	negotiated       expfmt.Format
	gzip             bool
}

func (e *Exporter) agree(r *http.Request) *agreement {
	accept := r.Header.Get("Accept")
	var encoding string
	switch fields := r.Header["Accept-Encoding"]; len(fields) {
	case 0:
	case 1:
		encoding = fields[0]
	default:
		encoding = strings.Join(fields, ",")
	}
	if a := e.agreed.Load(); a != nil && a.accept == accept && a.encoding == encoding {
		return a
	}
	a := &agreement{accept: accept, encoding: encoding, format: formatOther}
	a.negotiated = expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	gzip, ok := wantsGzip(encoding)
	a.gzip = gzip
	if ok {
		switch a.negotiated.FormatType() {
		case expfmt.TypeTextPlain:
			a.format = formatText
		case expfmt.TypeOpenMetrics:
			a.format = formatOpenMetrics
		}
	}
	e.agreed.Store(a)
	return a
}

// wantsGzip chooses between identity and gzip as promhttp does: the highest
// quality wins, identity among equals. It is not ok where the header is not a
// plain list or excludes both; promhttp answers then.
func wantsGzip(header string) (gzip, ok bool) {
	if header == "" {
		return false, true
	}
	identity, zipped := -1.0, -1.0
	for item := range strings.SplitSeq(header, ",") {
		name, parameter, weighted := strings.Cut(item, ";")
		name = strings.TrimSpace(name)
		q := 1.0
		if weighted {
			if q, ok = quality(strings.TrimSpace(parameter)); !ok {
				return false, false
			}
		}
		switch {
		case !isToken(name):
			return false, false
		case name == "*":
			identity, zipped = max(identity, q), max(zipped, q)
		case name == "identity":
			identity = max(identity, q)
		case name == "gzip":
			zipped = max(zipped, q)
		}
	}
	return zipped > identity, max(identity, zipped) != 0
}

// quality parses "q=" and a number from 0 to 1 without sign or exponent.
func quality(s string) (float64, bool) {
	number, ok := strings.CutPrefix(s, "q=")
	if !ok || strings.Trim(number, "0123456789.") != "" {
		return 0, false
	}
	q, err := strconv.ParseFloat(number, 64)
	return q, err == nil && q <= 1 && number[0] != '.'
}

func isToken(s string) bool {
	return s == "*" || s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
