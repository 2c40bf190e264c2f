package strict

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Schema returns the JSON schema of the files that Decode accepts into v, a pointer
// to a struct. It accepts every valid file, and does not express what Checkers, text
// types and the ranges of durations refuse.
func Schema(v any) map[string]any { return schemaOf(reflect.ValueOf(v).Elem(), "") }

func schemaOf(v reflect.Value, accept string) map[string]any {
	low, high, ranged := strings.Cut(accept, "..")
	if isText(v) {
		return map[string]any{"type": "string"}
	}
	switch v.Interface().(type) {
	case time.Duration:
		return map[string]any{"type": "string", "pattern": `^([0-9]+d)?([0-9.]+(ns|us|µs|ms|s|m|h))*$`}
	case bool:
		return map[string]any{"type": "boolean"}
	case string:
		switch accept {
		case "":
			return map[string]any{"type": "string"}
		case "scalar":
			return map[string]any{"type": []string{"string", "number", "boolean"}}
		}
		return map[string]any{"enum": strings.Split(accept, "|")}
	case int, float64:
		s := map[string]any{"type": map[reflect.Kind]string{reflect.Int: "integer", reflect.Float64: "number"}[v.Kind()]}
		if ranged {
			s["minimum"], _ = strconv.ParseFloat(low, 64)
			s["maximum"], _ = strconv.ParseFloat(high, 64)
		}
		return s
	}
	// What is commented out is null.
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return map[string]any{}
		}
		return schemaOf(v.Elem().Elem(), accept)
	case reflect.Slice:
		return map[string]any{"type": []string{"array", "null"}, "items": schemaOf(reflect.New(v.Type().Elem()).Elem(), accept)}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": schemaOf(reflect.New(v.Type().Elem()).Elem(), accept)}
	}
	keys := map[string]any{}
	for f, field := range v.Fields() {
		if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key != "" {
			keys[key] = schemaOf(field, f.Tag.Get("accept"))
		}
	}
	return map[string]any{"type": []string{"object", "null"}, "additionalProperties": false, "properties": keys}
}
