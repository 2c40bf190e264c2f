package kube

import (
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/runtime"
)

func TestMain(m *testing.M) {
	runtime.ErrorHandlers = nil // its back-off would compare the fake clock with the real one
	goleak.VerifyTestMain(m)
}
