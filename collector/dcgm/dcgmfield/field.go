// Package dcgmfield knows DCGM's fields by name and by id, and reads the
// counters file of dcgm-exporter, which names some of them. It promises that
// type, unit and kind of a field come from DCGM's own table (fields.tsv), never
// from what a file says of it, and that a file is taken whole or not at all,
// every mistake in it named with line and column.
package dcgmfield

// Field is one field of DCGM 4.
type Field struct {
	// ID is DCGM's number of the field, 1 and above.
	ID uint16
	// Name is the present name, DCGM_FI_DEV_GPU_TEMP_CELSIUS. DCGM 4.6 renamed
	// many fields; what one has of older documents is in Former.
	Name string
	// Former are the names that mean the same field: those before DCGM 4.6,
	// and dcgm_gpu_temp of DCGM 1.
	Former []string
	// Type is that of the value in DCGM.
	Type Type
	// Unit is that of the value in DCGM, in plural: celsius, mebibytes,
	// percent. It is empty for counts and codes, and where DCGM gives none.
	Unit string
	Kind Kind
	// Entity is the lowest level at which DCGM can be asked for the field.
	Entity Entity
}

// Type is the type of a value in DCGM (DCGM_FT_*).
type Type string

// Types of values.
const (
	Int64     Type = "int64"
	Double    Type = "double"
	String    Type = "string"
	Binary    Type = "binary" // a structure that is no value
	Timestamp Type = "timestamp"
)

// Kind says what can be made of the values of a field.
type Kind string

// Kinds of fields.
const (
	// Gauge can rise and fall; codes and bit masks are gauges too.
	Gauge Kind = "gauge"
	// Counter only grows, until the driver is loaded anew or the board
	// replaced.
	Counter Kind = "counter"
	// Info is a string.
	Info Kind = "info"
	// None is no value that a page can show.
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
