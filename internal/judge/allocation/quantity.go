package allocation

// quantity is a measured value, or an unknown one.
type quantity struct {
	value float64
	known bool
}

func measured(v float64) quantity { return quantity{v, true} }

// pointer returns the value as a Report has it: nil if unknown.
func (q quantity) pointer() *float64 {
	if !q.known {
		return nil
	}
	return new(q.value)
}
