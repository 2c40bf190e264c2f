package kubelet_test

import (
	"context"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// images has every image that it is asked for.
type images struct {
	runtime.UnimplementedImageServiceServer
}

func (images) ImageStatus(_ context.Context, req *runtime.ImageStatusRequest) (*runtime.ImageStatusResponse, error) {
	name := req.GetImage().GetImage()
	return &runtime.ImageStatusResponse{Image: &runtime.Image{Id: name, RepoTags: []string{name}, Size: 1 << 20}}, nil
}

func (images) ListImages(context.Context, *runtime.ListImagesRequest) (*runtime.ListImagesResponse, error) {
	return &runtime.ListImagesResponse{}, nil
}

func (images) ImageFsInfo(context.Context, *runtime.ImageFsInfoRequest) (*runtime.ImageFsInfoResponse, error) {
	use := []*runtime.FilesystemUsage{{Timestamp: time.Now().UnixNano(), FsId: &runtime.FilesystemIdentifier{Mountpoint: home}, UsedBytes: &runtime.UInt64Value{Value: 1 << 20}, InodesUsed: &runtime.UInt64Value{Value: 1}}}
	return &runtime.ImageFsInfoResponse{ImageFilesystems: use, ContainerFilesystems: use}, nil
}
