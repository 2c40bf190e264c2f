package differential

import (
	"flag"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"
)

var (
	seed  = flag.Uint64("seed", 1, "of the first generated case; case N has the seed plus N")
	cases = flag.Int("cases", 130, "how many cases to generate")
	every = flag.Int("every", 5, "of the unit tests of rules, play one in so many")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// oneOf returns one of the choices.
func oneOf[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// chance is true in so many of a hundred cases.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }
