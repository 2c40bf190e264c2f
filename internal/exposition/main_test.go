package exposition_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if settings := os.Getenv(clientEnv); settings != "" {
		client(settings)
		return
	}
	goleak.VerifyTestMain(m)
}
