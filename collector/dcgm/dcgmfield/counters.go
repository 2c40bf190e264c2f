package dcgmfield

// Counters is what a counters file asks for.
type Counters struct {
	// Rows are in the order of the file.
	Rows []Row
	// Skipped are rows that are no mistake and that no page can serve.
	Skipped []Skipped
}

// Row is one row of a counters file.
type Row struct {
	// Line is where it stands, from 1.
	Line int
	// Name is the name as written. It becomes the name of the family, or of
	// the label.
	Name string
	// Field is the field of that name. Its ID is 0 where Derived.
	Field Field
	// Derived says that dcgm-exporter computes the row itself (DCGM_EXP_…).
	Derived bool
	Type    RowType
	// Declared is the type as written. It differs from Type where the file
	// calls a counter what can fall.
	Declared RowType
	Help     string
}

// RowType is the second column of a counters file.
type RowType string

// Types of rows.
const (
	RowGauge   RowType = "gauge"
	RowCounter RowType = "counter"
	// RowLabel makes the value a label of every series of its entity.
	RowLabel RowType = "label"
)

// Skipped is a row that is left out.
type Skipped struct {
	Line int
	Name string
	// Reason is one of the constants below.
	Reason string
}

// Reasons for leaving out a row.
const (
	// SkipBinary: the value is a structure.
	SkipBinary = "binary"
	// SkipType: no value of DCGM is a histogram or a summary.
	SkipType = "type"
)

// Derived rows of dcgm-exporter, up to 4.8.4.
var derived = []string{
	"DCGM_EXP_CLOCK_EVENTS_COUNT", "DCGM_EXP_CLOCK_EVENTS_TOTAL",
	"DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_XID_ERRORS_TOTAL",
	"DCGM_EXP_GPU_HEALTH_STATUS", "DCGM_EXP_P2P_STATUS",
}
