package alertmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
)

// maxAnswer bounds the part of a response that is read, in bytes.
const maxAnswer = 64 << 10

// reason is why a request failed: a closed set, because it is a label.
type reason string

const (
	timedOut     reason = "timeout"      // no response in time
	network      reason = "network"      // no connection, or it broke
	credentials  reason = "credentials"  // a file could not be read
	redirected   reason = "redirect"     // 3xx
	unauthorized reason = "unauthorized" // 401, 403, 407
	throttled    reason = "throttled"    // 429
	clientError  reason = "client_error" // any other 4xx
	serverError  reason = "server_error" // 5xx, and invalid statuses
)

var reasons = []reason{timedOut, network, credentials, redirected, unauthorized, throttled, clientError, serverError}

// answer is the outcome of a request. The zero value is a success.
type answer struct {
	reason reason
	err    error
	// content is whether the alerts were refused; other alerts may be accepted.
	content bool
}

func (a *answer) failed() bool { return a.err != nil }

// readAnswer classifies the response of a server. An error shows the body only where an
// Alertmanager wrote it: another server could repeat the credentials.
func readAnswer(resp *http.Response) answer {
	code := resp.StatusCode
	// The body is for the message only, so a part of it will do.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if code/100 == 2 {
		return answer{}
	}
	a := answer{err: fmt.Errorf("status %d", code), reason: serverError}
	switch {
	case code/100 == 3:
		a.reason = redirected
		a.err = fmt.Errorf("status %d: redirects are not followed", code)
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		a.reason = unauthorized
	case code == http.StatusTooManyRequests:
		a.reason = throttled
	case code == http.StatusRequestEntityTooLarge:
		a.reason, a.content = clientError, true
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		// A server that is not an Alertmanager, or expects TLS, answers with the
		// same status. No alert is dropped for that.
		a.reason = clientError
		if text, isAPI := message(body); isAPI {
			a.content, a.err = true, fmt.Errorf("status %d: %s", code, clip(text))
		}
	case code/100 == 4:
		a.reason = clientError
	}
	return a
}

// message returns the message of a body, and whether the body has the form of
// the API: a string, or an object with a code and a message, as JSON.
func message(body []byte) (text string, isAPI bool) {
	if json.Unmarshal(body, &text) == nil {
		return text, text != ""
	}
	var object struct {
		Code    *int    `json:"code"`
		Message *string `json:"message"`
	}
	if json.Unmarshal(body, &object) == nil && object.Code != nil && object.Message != nil {
		return *object.Message, true
	}
	return "", false
}

// noAnswer classifies an error without a response.
func noAnswer(err error) answer {
	a := answer{err: errors.New(clip(err.Error())), reason: network}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		a.reason = credentials
	} else if timeout, ok := errors.AsType[net.Error](err); errors.Is(err, os.ErrDeadlineExceeded) || ok && timeout.Timeout() {
		a.reason = timedOut
	}
	return a
}

// beforeAt matches what may be a password: an error may show a proxy's address
// with one.
var beforeAt = regexp.MustCompile(`[^\s"/]+@`)

// clip makes one line of at most 200 characters of a foreign text, without passwords.
func clip(text string) string {
	text = beforeAt.ReplaceAllString(strings.Join(strings.Fields(text), " "), "[redacted]@")
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return text
}
