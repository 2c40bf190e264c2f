//go:build linux && cgo

package dcgm

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

// Bounds on what a host engine can make the exporter watch.
const (
	maxEntities    = 1024 // of one kind, DCGM_GROUP_MAX_ENTITIES_V2
	maxSwitchPorts = 64
)

// inventory is the list of entities.
type inventory struct {
	gpus, switches, instances, links, cpus, cores []entity
	// slices are the places of the MIG instances, in the order of instances.
	slices []slice
	// owner is the CPU of a core.
	owner map[entity]entity
}

// slice is the place of a GPU instance.
type slice struct {
	instance entity
	gpu      entity
	gi       int
	// cis are its compute instances.
	cis []int
}

func (v *inventory) equal(o *inventory) bool {
	return slices.Equal(v.gpus, o.gpus) && slices.Equal(v.switches, o.switches) && slices.Equal(v.instances, o.instances) &&
		slices.Equal(v.links, o.links) && slices.Equal(v.cpus, o.cpus) && slices.Equal(v.cores, o.cores) &&
		slices.EqualFunc(v.slices, o.slices, func(a, b slice) bool {
			return a.instance == b.instance && a.gpu == b.gpu && a.gi == b.gi && slices.Equal(a.cis, b.cis)
		})
}

// look lists the entities. A code other than ok: the host engine returned no
// list.
func (e *engine) look() (inventory, code) {
	var v inventory
	var c code
	if v.gpus, c = e.list(gpus); c != ok {
		return v, c
	}
	for _, kind := range []struct {
		group group
		list  *[]entity
	}{{switches, &v.switches}, {instances, &v.instances}, {cpus, &v.cpus}} {
		if *kind.list, c = e.list(kind.group); c.gone() {
			return v, c
		}
	}
	if len(v.instances) > 0 {
		v.slices = e.hierarchy()
	}
	if len(v.switches) > 0 || e.wants(links) {
		v.links = e.ports(v.switches)
	}
	if len(v.cpus) > 0 && e.wants(cores) {
		v.cores, v.owner = e.cores()
	}
	return v, ok
}

// list returns the entities of one kind, sorted.
func (e *engine) list(g group) ([]entity, code) {
	ids, err := dcgm.GetEntityGroupEntities(dcgm.Field_Entity_Group(g))
	c := e.lib.code(err)
	if c != ok && !c.lacking() {
		e.calls.count("dcgmGetEntityGroupEntities", c)
	}
	var out []entity
	for _, id := range ids[:min(len(ids), maxEntities)] {
		out = append(out, entity{g, uint32(id)})
	}
	slices.SortFunc(out, compareEntities)
	return slices.Compact(out), c
}

func compareEntities(a, b entity) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.id, b.id))
}

// hierarchy finds the places of GPU instances.
func (e *engine) hierarchy() []slice {
	if !has("dcgmGetGpuInstanceHierarchy") {
		return nil
	}
	h, err := dcgm.GetGPUInstanceHierarchy()
	if !e.calls.count("dcgmGetGpuInstanceHierarchy", e.lib.code(err)) {
		return nil
	}
	var out []slice
	known := h.EntityList[:min(h.Count, uint(len(h.EntityList)))]
	for i := range known {
		m := &known[i]
		if group(m.Entity.EntityGroupId) == instances && group(m.Parent.EntityGroupId) == gpus {
			out = append(out, slice{
				instance: entity{instances, uint32(m.Entity.EntityId)},
				gpu:      entity{gpus, uint32(m.Parent.EntityId)},
				gi:       int(m.Info.NvmlInstanceId),
			})
		}
	}
	for i := range known {
		m := &known[i]
		if group(m.Entity.EntityGroupId) != computes {
			continue
		}
		parent := entity{group(m.Parent.EntityGroupId), uint32(m.Parent.EntityId)}
		for j := range out {
			if out[j].instance == parent {
				out[j].cis = append(out[j].cis, int(m.Info.NvmlComputeInstanceId))
			}
		}
	}
	slices.SortFunc(out, func(a, b slice) int { return compareEntities(a.instance, b.instance) })
	return out
}

// ports lists the NVLinks of switches, and the NVLinks of GPUs where a field of
// theirs is configured. Where the host engine has another version of the list,
// each possible link of a switch is tried.
func (e *engine) ports(switchList []entity) []entity {
	var out []entity
	c := functionNotFound
	if has("dcgmGetNvLinkLinkStatus") {
		status, err := dcgm.GetNvLinkLinkStatus()
		c = e.lib.code(err)
		for _, l := range status {
			parent := entity{group(l.ParentType), uint32(l.ParentId)}
			if l.State != dcgm.LS_NOT_SUPPORTED && (parent.group == switches || e.wants(links)) {
				out = append(out, link(parent, int(l.Index)))
			}
		}
	}
	if !e.calls.count("dcgmGetNvLinkLinkStatus", c) {
		for _, s := range switchList {
			for port := range maxSwitchPorts {
				out = append(out, link(s, port))
			}
		}
	}
	slices.SortFunc(out, compareEntities)
	return slices.Compact(out[:min(len(out), maxEntities)])
}

// cores lists the cores of CPUs with their CPU.
func (e *engine) cores() ([]entity, map[entity]entity) {
	if !has("dcgmGetCpuHierarchy") {
		return nil, nil
	}
	h, err := dcgm.GetCPUHierarchy()
	if !e.calls.count("dcgmGetCpuHierarchy", e.lib.code(err)) {
		return nil, nil
	}
	var out []entity
	owner := map[entity]entity{}
	for _, cpu := range h.CPUs[:min(h.NumCPUs, uint(len(h.CPUs)))] {
		for word, mask := range cpu.OwnedCores {
			for ; mask != 0 && len(out) < maxEntities; mask &= mask - 1 {
				core := entity{cores, uint32(word*64 + bits.TrailingZeros64(mask))}
				out = append(out, core)
				owner[core] = entity{cpus, uint32(cpu.CPUID)}
			}
		}
	}
	return out, owner
}
