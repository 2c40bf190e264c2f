package health

// String returns the value in the format of the catalogue.
func (e Ends) String() string {
	switch {
	case e.Reset:
		return "reset"
	case e.Load:
		return "load"
	case e.Answer:
		return "answer"
	}
	return e.After.String()
}
