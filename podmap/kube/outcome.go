package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// failure is the error of a request, with its outcome.
type failure struct {
	outcome Outcome
	// after is the wait that the server requests.
	after time.Duration
	// serverBehind: the server may not have the known version.
	serverBehind bool
	err          error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// errSlow is the cause of a context whose time is over.
var errSlow = errors.New("no answer in time")

// failed classifies the error of a request with the context ctx.
func failed(ctx context.Context, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if cause := context.Cause(ctx); errors.Is(cause, errSlow) {
		return &failure{outcome: OutcomeTimeout, err: cause}
	}
	return &failure{outcome: outcomeOf(err), err: err}
}

func outcomeOf(err error) Outcome {
	if s, ok := errors.AsType[*status](err); ok {
		return statusOutcome(s.Code)
	}
	switch {
	case errors.Is(err, errTooLarge):
		return OutcomeTooLarge
	case errors.Is(err, errJSON), errors.Is(err, errKind):
		return OutcomeGarbage
	case isCertificate(err):
		return OutcomeCertificate
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		if e.Timeout() {
			return OutcomeTimeout
		}
		return OutcomeConnect
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return OutcomeTimeout
	}
	return OutcomeUnavailable
}

func isCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.AlertError](err)
	return ok
}

func statusOutcome(code int) Outcome {
	switch {
	case code == http.StatusUnauthorized:
		return OutcomeUnauthorized
	case code == http.StatusForbidden:
		return OutcomeForbidden
	case code == http.StatusNotFound:
		return OutcomeNotFound
	case code == http.StatusTooManyRequests:
		return OutcomeThrottled
	case code == http.StatusGone:
		return OutcomeExpired
	case code == http.StatusGatewayTimeout:
		return OutcomeTimeout
	case code >= 500:
		return OutcomeUnavailable
	}
	return OutcomeError
}

// clip makes one line of bounded length of a text that came from outside.
func clip(s string) string {
	cut := len(s) > maxMessage
	if cut {
		s = s[:maxMessage]
	}
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if cut {
		s += "…"
	}
	return s
}
