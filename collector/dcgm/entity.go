package dcgm

import "strconv"

// group is a kind of entity, DCGM_FE_*.
type group uint32

const (
	gpus      group = 1
	switches  group = 3
	instances group = 4 // of GPUs: MIG
	computes  group = 5 // compute instances in them
	links     group = 6
	cpus      group = 7
	cores     group = 8
)

// entity is the subject of a field's value.
type entity struct {
	group group
	id    uint32
}

// link returns the entity of one NVLink of a GPU or switch. Its id is
// dcgm_link_t: the parent's group in 8 bits, the port in 16, the parent's id in
// 8.
func link(parent entity, port int) entity {
	return entity{links, uint32(parent.group)&0xff | uint32(port&0xffff)<<8 | parent.id&0xff<<24}
}

// port is the number of a link, owner the device that it belongs to.
func (e entity) port() int { return int(e.id >> 8 & 0xffff) }

func (e entity) owner() entity { return entity{group(e.id & 0xff), e.id >> 24} }

// part is the value of the label entity: the part of its device that e is.
func (e entity) part() string {
	switch e.group {
	case links:
		return "link-" + strconv.Itoa(e.port())
	case cores:
		return "core-" + strconv.FormatUint(uint64(e.id), 10)
	}
	return ""
}
