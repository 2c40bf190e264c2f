//go:build !linux

package sim

import (
	"context"
	"errors"
)

func watchFile(context.Context, string) (<-chan struct{}, error) {
	return nil, errors.ErrUnsupported
}
