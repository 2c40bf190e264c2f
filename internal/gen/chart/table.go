package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The table stands between these lines of the README.
const (
	tableBegin = "<!-- values: made from values.yaml by make generate -->\n"
	tableEnd   = "<!-- end of values -->\n"
)

// withTable returns the README with the table of the values in its place.
func withTable(readme, values []byte) ([]byte, error) {
	begin := bytes.Index(readme, []byte(tableBegin))
	end := bytes.Index(readme, []byte(tableEnd))
	if begin < 0 || end < begin {
		return nil, errors.New("the lines between which the table stands are missing")
	}
	rows, err := table(values)
	if err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	var out bytes.Buffer
	out.Write(readme[:begin])
	out.WriteString(tableBegin + "| value | default | meaning |\n|---|---|---|\n")
	for _, r := range rows {
		out.WriteString(r)
	}
	out.Write(readme[end:])
	return out.Bytes(), nil
}

// table has a row for each value, in the order of the file. A value has a
// comment; a section need not have one.
func table(values []byte) ([]string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(values, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("not a mapping")
	}
	return section("", doc.Content[0])
}

// deep are sections of which a row is one value: Kubernetes defines their form.
var deep = map[string]bool{"affinity": true, "updateStrategy": true, "resources": true, "remediator.resources": true}

func section(prefix string, mapping *yaml.Node) ([]string, error) {
	var rows []string
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := prefix + key.Value
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 && !deep[name] {
			inner, err := section(name+".", value)
			if err != nil {
				return nil, err
			}
			rows = append(rows, inner...)
			continue
		}
		said := meaning(key.HeadComment)
		if said == "" {
			return nil, fmt.Errorf("line %d: %s has no comment", key.Line, name)
		}
		text, err := fallback(value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", key.Line, name, err)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", name, text, said))
	}
	return rows, nil
}

// meaning is the last paragraph of a comment, as one line of a table.
func meaning(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.ReplaceAll(strings.TrimSpace(strings.Join(words, " ")), "|", "\\|")
}

// fallback is the default as it is written in a table.
func fallback(n *yaml.Node) (string, error) {
	if n.Kind == yaml.MappingNode && len(n.Content) > 0 && n.Content[0].Value == "nodeAffinity" {
		return "see values.yaml", nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return "", err
	}
	if v == "" {
		return "", nil
	}
	if s, ok := v.(string); ok {
		return "`" + s + "`", nil
	}
	data, err := json.Marshal(v)
	return "`" + string(data) + "`", err
}
