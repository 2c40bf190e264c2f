// Package dcgmfield is the table of DCGM's fields, by name and by id, from
// DCGM's own headers and documentation (fields.tsv).
package dcgmfield

// Field is one field of DCGM 4.
type Field struct {
	// ID is DCGM's number of the field, 1 and above.
	ID uint16
	// Name is the name since DCGM 4.7, such as DCGM_FI_DEV_GPU_TEMP_CELSIUS.
	Name string
	// Former are earlier names of the same field: names before DCGM 4.6, and
	// names of DCGM 1, such as dcgm_gpu_temp.
	Former []string
	// Type is the type of the value in DCGM.
	Type Type
	// Unit is the unit of the value in DCGM, in plural: celsius, mebibytes,
	// percent. It is empty for counts and codes, and where DCGM states none.
	Unit string
	Kind Kind
	// Entity is the lowest level at which DCGM serves the field.
	Entity Entity
}

// Type is the type of a value in DCGM (DCGM_FT_*).
type Type string

// Types of values.
const (
	Int64     Type = "int64"
	Double    Type = "double"
	String    Type = "string"
	Binary    Type = "binary" // a structure
	Timestamp Type = "timestamp"
)

// Kind is how the values of a field behave over time.
type Kind string

// Kinds of fields.
const (
	// Gauge can rise and fall; codes and bit masks are gauges too.
	Gauge Kind = "gauge"
	// Counter only grows, until the driver is reloaded or the board is
	// replaced.
	Counter Kind = "counter"
	// Info is a string.
	Info Kind = "info"
	// None marks a value that a page cannot show.
	None Kind = "none"
)

// Entity is what a field describes (DCGM_FE_*).
type Entity string

// Entities.
const (
	Node            Entity = "node"
	GPU             Entity = "gpu"
	GPUInstance     Entity = "gpu_instance"
	ComputeInstance Entity = "compute_instance"
	VGPU            Entity = "vgpu"
	Switch          Entity = "switch"
	Link            Entity = "link"
	CPU             Entity = "cpu"
	CPUCore         Entity = "cpu_core"
	ConnectX        Entity = "connectx"
)
