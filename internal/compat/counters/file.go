// Package counters reads the counters file of dcgm-exporter: which DCGM fields
// to show, under which type and help.
//
// Type, unit and kind of a field come from DCGM's own table (dcgmfield), not
// from the file. A row with an unknown field, of a newer DCGM for example, is left
// out. A file with any other mistake is rejected, with every mistake in it by line
// and column.
package counters

import (
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

// Release is the release of dcgm-exporter that a file is written for. It decides the
// meaning of a name that has two.
type Release string

// Releases. 4.8 stands for 4.8 and older, 4.9 for 4.9 and newer.
const (
	Unstated  Release = ""
	Release48 Release = "4.8"
	Release49 Release = "4.9"
)

// File is the content of a counters file.
type File struct {
	// Rows are in the order of the file.
	Rows []Row
	// Skipped are rows that have no series.
	Skipped []Skipped
	// Unread are the positions and causes of the skipped rows whose field is not
	// known.
	Unread strict.Mistakes
}

// Row is one row of a counters file.
type Row struct {
	// Line is its line in the file, from 1.
	Line int
	// Name is the name as written. It becomes the name of the family, or of
	// the label.
	Name string
	// Field is the field of that name. Its ID is 0 where Derived.
	Field dcgmfield.Field
	// Derived marks a row that dcgm-exporter computes itself (DCGM_EXP_…).
	Derived bool
	Type    Type
	// Declared is the type as written. It differs from Type where the file
	// declares a counter for a value that can fall.
	Declared Type
	Help     string
}

// Type is the second column of a counters file.
type Type string

// Types of rows.
const (
	Gauge   Type = "gauge"
	Counter Type = "counter"
	// Label makes the value a label of every series of its entity.
	Label Type = "label"
)

// Skipped is a row without a series.
type Skipped struct {
	Line int
	Name string
	// Reason is one of the constants below, or a Skip constant of package compat.
	Reason string
}

// Reasons for skipping a row.
const (
	// SkipBinary: the value is a structure.
	SkipBinary = "binary"
	// SkipType: no value of DCGM is a histogram or a summary.
	SkipType = "type"
	// SkipUnknown: no field has this name.
	SkipUnknown = "unknown"
	// SkipAmbiguous: the name has two meanings, and the release is not stated.
	SkipAmbiguous = "ambiguous"
)

// utilRatio is the field 203 in percent in files up to dcgm-exporter 4.8, as in DCGM
// 4.6, and the field 1613 from 0 to 1 since 4.9.
const utilRatio = "DCGM_FI_DEV_GPU_UTIL_RATIO"

// derived are the rows that dcgm-exporter up to 4.8.4 computes itself.
var derived = []string{
	"DCGM_EXP_CLOCK_EVENTS_COUNT", "DCGM_EXP_CLOCK_EVENTS_TOTAL",
	"DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_XID_ERRORS_TOTAL",
	"DCGM_EXP_GPU_HEALTH_STATUS", "DCGM_EXP_P2P_STATUS",
}
