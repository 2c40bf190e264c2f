// Package fetch asks a running exporter for what it tells people.
package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 20

// Get writes to w what is found at an address. The error says what answered
// instead, and shows no password of the address.
func Get(ctx context.Context, client *http.Client, address string, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no exporter answers there: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("%s answered %s: %s", req.URL.Redacted(), resp.Status, strings.TrimSpace(string(text)))
	}
	if _, err := io.Copy(w, io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return fmt.Errorf("%s: %w", req.URL.Redacted(), err)
	}
	return nil
}
