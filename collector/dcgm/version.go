package dcgm

import "strings"

// maxVersion bounds a version, in bytes.
const maxVersion = 64

// parseVersion returns the version in DCGM's build information: pairs of key
// and value, "version:4.5.1;arch:x86_64;…". It is empty where there is none.
func parseVersion(info string) string {
	for pair := range strings.SplitSeq(info, ";") {
		key, value, _ := strings.Cut(pair, ":")
		if strings.TrimSpace(key) != "version" {
			continue
		}
		value = strings.TrimSpace(value)
		if len(value) > maxVersion || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return ""
		}
		return value
	}
	return ""
}
