// PNG with a palette or of colours, and rendering with librsvg, loaded at run time because loading takes 10 ms that
// only PNG output needs.
#include "qkv/plot/png.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "qkv/core/check.h"
#include "qkv/io/png.h"

namespace qkv::plotting {
namespace {

// The few functions of librsvg, cairo and GLib that we call, declared here so that no development package is needed.
struct RsvgRectangle {
  double x, y, width, height;
};
struct GError {
  uint32_t domain;
  int code;
  char* message;
};

struct Renderer {
  void* (*rsvg_handle_new_from_data)(const uint8_t*, size_t, GError**);
  int (*rsvg_handle_get_intrinsic_size_in_pixels)(void*, double*, double*);
  int (*rsvg_handle_render_document)(void*, void*, const RsvgRectangle*, GError**);
  void (*g_object_unref)(void*);
  void (*g_error_free)(GError*);
  void* (*cairo_image_surface_create)(int, int, int);
  int (*cairo_surface_status)(void*);
  void (*cairo_surface_flush)(void*);
  unsigned char* (*cairo_image_surface_get_data)(void*);
  int (*cairo_image_surface_get_stride)(void*);
  void (*cairo_surface_destroy)(void*);
  void* (*cairo_create)(void*);
  void (*cairo_set_source_rgb)(void*, double, double, double);
  void (*cairo_paint)(void*);
  void (*cairo_destroy)(void*);
};

// GLib aborts the program when memory runs out, so first check that there is room for the libraries, the fonts and the
// picture.
void check_room() {
  constexpr size_t kRoom = size_t{256} << 20;
  void* room = mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    throw Error(tr("cannot write PNG: it needs up to {room} MB of address space, and the memory limit leaves less",
                   "room"_a = kRoom >> 20),
                tr("write .svg"));
  munmap(room, kRoom);
}

void* open_library(const char* file, const char* package) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(tr("cannot write PNG: {file} is not installed (Debian package {package})", "file"_a = file,
                   "package"_a = package),
                tr("apt install {package}, or write .svg", "package"_a = package));
  return library;
}

template <class Function>
void load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  require(function != nullptr, "cannot write PNG: the installed library has no {name}", "name"_a = name);
}

Renderer load_renderer() {
  void* rsvg = open_library("librsvg-2.so.2", "librsvg2-2");
  void* cairo = open_library("libcairo.so.2", "libcairo2");
  Renderer r;
  load(rsvg, "rsvg_handle_new_from_data", r.rsvg_handle_new_from_data);
  load(rsvg, "rsvg_handle_get_intrinsic_size_in_pixels", r.rsvg_handle_get_intrinsic_size_in_pixels);
  load(rsvg, "rsvg_handle_render_document", r.rsvg_handle_render_document);
  load(rsvg, "g_object_unref", r.g_object_unref);
  load(rsvg, "g_error_free", r.g_error_free);
  load(cairo, "cairo_image_surface_create", r.cairo_image_surface_create);
  load(cairo, "cairo_surface_status", r.cairo_surface_status);
  load(cairo, "cairo_surface_flush", r.cairo_surface_flush);
  load(cairo, "cairo_image_surface_get_data", r.cairo_image_surface_get_data);
  load(cairo, "cairo_image_surface_get_stride", r.cairo_image_surface_get_stride);
  load(cairo, "cairo_surface_destroy", r.cairo_surface_destroy);
  load(cairo, "cairo_create", r.cairo_create);
  load(cairo, "cairo_set_source_rgb", r.cairo_set_source_rgb);
  load(cairo, "cairo_paint", r.cairo_paint);
  load(cairo, "cairo_destroy", r.cairo_destroy);
  return r;
}

using Handle = std::unique_ptr<void, void (*)(void*)>;

[[noreturn]] void fail_with(const Renderer& r, GError* error) {
  const std::string message = error && error->message ? error->message : "unknown error";
  if (error) r.g_error_free(error);
  fail("[png] librsvg: ", message);
}

}  // namespace

std::string encode_png_indexed(std::span<const uint8_t> pixels, int64_t width, int64_t height,
                               std::span<const Colour> palette) {
  std::string table;
  for (const Colour& c : palette)
    table += {static_cast<char>(c.red), static_cast<char>(c.green), static_cast<char>(c.blue)};
  return encode_png(pixels, width, height, PngPixels::palette, table);
}

std::string encode_png_rgb(std::span<const uint8_t> pixels, int64_t width, int64_t height) {
  return encode_png(pixels, width, height, PngPixels::rgb);
}

std::string render_png(const std::string& svg, double scale) {
  check_room();
  static const Renderer r = load_renderer();
  GError* error = nullptr;
  const Handle document(r.rsvg_handle_new_from_data(reinterpret_cast<const uint8_t*>(svg.data()), svg.size(), &error),
                        r.g_object_unref);
  if (!document) fail_with(r, error);
  double wide = 0, high = 0;
  check(r.rsvg_handle_get_intrinsic_size_in_pixels(document.get(), &wide, &high) != 0, "[png] the picture has no size");
  const double width = std::ceil(wide * scale), height = std::ceil(high * scale);
  check(width >= 1 && height >= 1 && width <= 32767 && height <= 32767, "[png] picture of ", width, " x ", height,
        " pixels, the limit is 32767 per side");
  constexpr int kRgb24 = 1;
  const int columns = static_cast<int>(width), rows = static_cast<int>(height);
  const Handle surface(r.cairo_image_surface_create(kRgb24, columns, rows), r.cairo_surface_destroy);
  check(r.cairo_surface_status(surface.get()) == 0, "[png] not enough memory for ", width, " x ", height, " pixels");
  {
    const Handle pen(r.cairo_create(surface.get()), r.cairo_destroy);
    r.cairo_set_source_rgb(pen.get(), 1, 1, 1);
    r.cairo_paint(pen.get());
    const RsvgRectangle all{0, 0, width, height};
    if (!r.rsvg_handle_render_document(document.get(), pen.get(), &all, &error)) fail_with(r, error);
  }
  r.cairo_surface_flush(surface.get());
  const unsigned char* data = r.cairo_image_surface_get_data(surface.get());
  const int64_t stride = r.cairo_image_surface_get_stride(surface.get());
  std::vector<uint8_t> pixels;
  pixels.reserve(static_cast<size_t>(columns) * rows * 3);
  for (int64_t y = 0; y < rows; ++y)
    for (int64_t x = 0; x < columns; ++x) {
      uint32_t word;  // cairo's pixels are words in the machine's byte order
      std::copy_n(data + y * stride + x * 4, 4, reinterpret_cast<unsigned char*>(&word));
      for (int shift : {16, 8, 0}) pixels.push_back(static_cast<uint8_t>(word >> shift & 255));
    }
  return encode_png_rgb(pixels, columns, rows);
}

}  // namespace qkv::plotting
