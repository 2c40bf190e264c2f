package alertmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-openapi/runtime"
)

// maxAnswer bounds the part of a response that is read, in bytes.
const maxAnswer = 4 << 10

// maxAfter bounds the wait that a server can request. An alert is sent every
// minute with an end four minutes ahead, and must be sent again before that.
const maxAfter = 2 * time.Minute

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
	// slow is whether a retry can succeed only after an operator acted.
	slow bool
	// after is the wait that the server requests, or 0.
	after time.Duration
}

func (a *answer) failed() bool { return a.err != nil }

// readAnswer classifies the response of a server.
func readAnswer(resp runtime.ClientResponse, now time.Time) answer {
	code := resp.Code()
	// The body is for the message only, so a part of it will do.
	body, _ := io.ReadAll(io.LimitReader(resp.Body(), maxAnswer))
	if code/100 == 2 {
		return answer{}
	}
	text, isAPI := message(body)
	a := answer{err: fmt.Errorf("status %d: %s", code, text)}
	if text == "" {
		a.err = fmt.Errorf("status %d", code)
	}
	switch {
	case code/100 == 3:
		a.reason, a.slow = redirected, true
		a.err = fmt.Errorf("status %d: redirects are not followed", code)
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		a.reason, a.slow = unauthorized, true
	case code == http.StatusTooManyRequests:
		a.reason = throttled
	case code == http.StatusRequestEntityTooLarge:
		a.reason, a.content = clientError, true
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		// A server that is not an Alertmanager, or expects TLS, answers with the
		// same status. No alert is dropped for that.
		a.reason, a.content, a.slow = clientError, isAPI, !isAPI
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		a.reason = clientError
	case code/100 == 4:
		a.reason, a.slow = clientError, true
	default:
		a.reason = serverError
	}
	a.after = retryAfter(resp.GetHeader("Retry-After"), now)
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
	// A truncated body is not valid JSON.
	if len(body) == maxAnswer && (body[0] == '"' || strings.HasPrefix(string(body), `{"code":`)) {
		return string(body), true
	}
	return string(body), false
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxAfter)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), maxAfter)
	}
	return 0
}

// noAnswer classifies an error without a response.
func noAnswer(err error) answer {
	a := answer{err: err, reason: network}
	if file, ok := errors.AsType[*fileError](err); ok {
		a.reason, a.slow, a.err = credentials, true, file
	} else if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); errors.Is(err, os.ErrDeadlineExceeded) || ok && timeout.Timeout() {
		a.reason = timedOut
	}
	return a
}
