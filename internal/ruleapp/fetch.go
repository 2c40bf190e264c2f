package ruleapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/prometheus/common/config"

	"github.com/accel-exporter/accel-exporter/internal/fetch"
)

// fetchWith writes what an address answers to a client that is as a file says.
// It stands here because that client is linked here anyway.
func fetchWith(ctx context.Context, args []string, w io.Writer) error {
	if len(args) != 2 {
		return errors.New("fetch takes a file and an address")
	}
	file, address := args[0], args[1]
	cfg, _, err := config.LoadHTTPConfigFile(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	cfg.SetDirectory(filepath.Dir(file))
	client, err := config.NewClientFromConfig(*cfg, "accel-exporter")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer client.CloseIdleConnections()
	return fetch.Get(ctx, client, address, w)
}
