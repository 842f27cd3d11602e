"""Makes pictures.json with Pillow and pypng: PNG files of every kind with the bytes that they mean, and resized images.

A file, its pixels and every image are written as hexadecimal digits.
"""

import io
import json
import random
import sys

import png
from PIL import Image


def some(count, most, seed):
    rng = random.Random(seed)
    return [rng.randint(0, most) for _ in range(count)]


def with_pypng(rows, width, **options):
    out = io.BytesIO()
    png.Writer(width=width, height=len(rows), **options).write(out, rows)
    return out.getvalue()


def entry(file, height, width, channels, pixels):
    return {"file": file.hex(), "height": height, "width": width, "channels": channels, "pixels": bytes(pixels).hex()}


def png_cases():
    cases = {}
    height, width = 11, 13
    for interlace in (False, True):
        suffix = "_interlaced" if interlace else ""
        for depth in (1, 2, 4, 8, 16):
            most = 2**depth - 1
            values = some(height * width, most, depth)
            rows = [values[r * width : (r + 1) * width] for r in range(height)]
            file = with_pypng(rows, width, greyscale=True, bitdepth=depth, interlace=interlace)
            cases[f"grey_{depth}{suffix}"] = entry(file, height, width, 1, [(v * 255 * 2 + most) // (2 * most) for v in values])
        for depth in (8, 16):
            most = 2**depth - 1
            values = some(height * width * 3, most, 20 + depth)
            rows = [values[r * width * 3 : (r + 1) * width * 3] for r in range(height)]
            file = with_pypng(rows, width, greyscale=False, bitdepth=depth, interlace=interlace)
            cases[f"rgb_{depth}{suffix}"] = entry(file, height, width, 3, [(v * 255 * 2 + most) // (2 * most) for v in values])
        for depth in (1, 2, 4, 8):
            colours = [tuple(some(3, 255, 40 + i)) for i in range(min(2**depth, 30))]
            values = some(height * width, len(colours) - 1, 60 + depth)
            rows = [values[r * width : (r + 1) * width] for r in range(height)]
            file = with_pypng(rows, width, palette=colours, bitdepth=depth, interlace=interlace)
            cases[f"palette_{depth}{suffix}"] = entry(file, height, width, 3, [c for v in values for c in colours[v]])
    # Opaque alpha is dropped; Pillow uses all filters for pictures that change slowly.
    for mode, channels in (("LA", 1), ("RGBA", 3)):
        image = Image.new(mode, (width, height))
        pixels = []
        for y in range(height):
            for x in range(width):
                colour = [(3 * x + 5 * y + 40 * c) % 256 for c in range(channels)]
                image.putpixel((x, y), tuple(colour + [255]))
                pixels += colour
        out = io.BytesIO()
        image.save(out, "PNG")
        cases[f"opaque_{mode.lower()}"] = entry(out.getvalue(), height, width, channels, pixels)
    for width_, height_ in ((64, 48), (1, 1), (3, 200)):
        image = Image.new("L", (width_, height_))
        image.putdata([(x * x + 3 * y * x + y * y // 2) % 256 for y in range(height_) for x in range(width_)])
        out = io.BytesIO()
        image.save(out, "PNG", optimize=True)
        cases[f"pillow_{width_}_{height_}"] = entry(out.getvalue(), height_, width_, 1, image.tobytes())
    return cases


def transparent_cases():
    image = Image.new("RGBA", (4, 3), (10, 20, 30, 255))
    image.putpixel((2, 1), (1, 2, 3, 254))
    out = io.BytesIO()
    image.save(out, "PNG")
    keyed = with_pypng([[0, 5], [7, 0]], 2, greyscale=True, bitdepth=8, transparent=7)
    palette = with_pypng([[0, 1], [1, 0]], 2, palette=[(1, 2, 3, 255), (4, 5, 6, 0)], bitdepth=8)
    return {"alpha": out.getvalue().hex(), "key": keyed.hex(), "palette": palette.hex()}


def resize_cases():
    cases = []
    for (h, w), (to_h, to_w) in (((28, 28), (96, 96)), ((28, 28), (32, 32)), ((5, 9), (17, 4)), ((40, 31), (8, 28)), ((1, 1), (3, 2))):
        image = Image.new("L", (w, h))
        image.putdata(some(h * w, 255, h * w + to_h))
        out = image.resize((to_w, to_h), Image.BILINEAR)
        cases.append({"from": [h, w], "to": [to_h, to_w], "in": image.tobytes().hex(), "out": out.tobytes().hex()})
    return cases


def grey_case():
    image = Image.new("RGB", (16, 16))
    image.putdata([tuple(some(3, 255, i)) for i in range(256)])
    planes = b"".join(band.tobytes() for band in image.split())
    return {"in": planes.hex(), "out": image.convert("L").tobytes().hex()}


def main():
    data = {"png": png_cases(), "transparent": transparent_cases(), "resize": resize_cases(), "grey": grey_case()}
    with open(sys.argv[1], "w") as f:
        json.dump(data, f, indent=1, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    main()
