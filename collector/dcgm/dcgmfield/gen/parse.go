package main

import (
	"regexp"
	"strconv"
	"strings"
)

// field is one identifier of the header.
type field struct {
	id     int
	name   string
	former []string
}

var (
	defined = regexp.MustCompile(`(?m)^#define (DCGM_FI_\w+)[ \t]+(\d+)`)
	aliased = regexp.MustCompile(`(?m)^#define (DCGM_FI_\w+)[ \t]+(DCGM_FI_\w+)[ \t]*(?://.*|/\*.*)?$`)
	// bounds name no field.
	bounds = regexp.MustCompile(`_FIELDS?_ID$|INTERNAL_FIELDS|MAX_FIELDS|FIELD_UNKNOWN$`)
)

// parseHeader returns the fields of dcgm_fields.h by id.
func parseHeader(text string) map[int]*field {
	fields := map[int]*field{}
	names := map[string]*field{}
	for _, m := range defined.FindAllStringSubmatch(text, -1) {
		id, err := strconv.Atoi(m[2])
		if err != nil || id == 0 || bounds.MatchString(m[1]) {
			continue
		}
		if f := fields[id]; f != nil {
			f.former = append(f.former, m[1])
			names[m[1]] = f
			continue
		}
		f := &field{id: id, name: m[1]}
		fields[id], names[m[1]] = f, f
	}
	for _, m := range aliased.FindAllStringSubmatch(text, -1) {
		if f := names[m[2]]; f != nil {
			f.former = append(f.former, m[1])
		}
	}
	return fields
}

// addLegacy adds the names of DCGM 1.
func addLegacy(fields map[int]*field, csv string) {
	for line := range strings.Lines(csv) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), ",")
		if id, err := strconv.Atoi(number); err == nil && fields[id] != nil {
			fields[id].former = append(fields[id].former, name)
		}
	}
}

var (
	populated = regexp.MustCompile(`DcgmFieldsPopulateOneFieldWithFormatting\(((?:[^()]|\([^()]*\))*)\)`)
	comment   = regexp.MustCompile(`(?s)/\*.*?\*/`)
	quoted    = regexp.MustCompile(`"[^"]*"`)
)

// meta is DCGM's description of a field: DCGM_FT_INT64, a unit, DCGM_FE_GPU.
type meta struct{ typ, unit, entity string }

// parseSource returns the descriptions in dcgm_fields.cpp, by id. Fields that it
// describes in loops are left to describe.
func parseSource(text string, fields map[int]*field) map[int]meta {
	ids := map[string]int{}
	for id, f := range fields {
		ids[f.name] = id
		for _, n := range f.former {
			ids[n] = id
		}
	}
	found := map[int]meta{}
	for _, m := range populated.FindAllStringSubmatch(comment.ReplaceAllString(text, ""), -1) {
		// A tag may hold a comma.
		args := strings.Split(quoted.ReplaceAllStringFunc(m[1], func(s string) string { return strings.ReplaceAll(s, ",", " ") }), ",")
		if len(args) != 10 {
			continue
		}
		for i := range args {
			args[i] = strings.TrimSpace(args[i])
		}
		if id := ids[args[0]]; id != 0 {
			found[id] = meta{typ: args[1], unit: args[7], entity: args[8]}
		}
	}
	return found
}
