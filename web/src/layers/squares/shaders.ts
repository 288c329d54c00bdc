// Shaders of the squares layer. The vertex shader has no attributes: it reads the slot's texels by its own number, which
// in software rendering is several times faster than instancing. Small squares are points, of one vertex instead of six.

import { SHAPES, SNAP_SIDE_GLSL } from "./marks.ts";
import { TEXTURE_WIDTH } from "./texels.ts";

/** How a square is handed to the graphics card. */
export type Primitive = "point" | "quad";

const QUAD_CORNERS = `
const vec2 CORNERS[6] = vec2[6](vec2(0, 0), vec2(1, 0), vec2(0, 1), vec2(0, 1), vec2(1, 0), vec2(1, 1));
`;

interface Parts {
  readonly declare: string;
  readonly slot: string;
  readonly corner: string;
  readonly finish: string;
  /** Where in its square a pixel lies, in the fragment shader. */
  readonly inside: string;
}

const PARTS: Readonly<Record<Primitive, Parts>> = {
  point: {
    declare: "",
    slot: "gl_VertexID",
    corner: "vec2(0.5)",
    finish: "gl_PointSize = side;",
    inside: "gl_PointCoord * side",
  },
  quad: {
    declare: `out vec2 local;${QUAD_CORNERS}`,
    slot: "gl_VertexID / 6",
    corner: "CORNERS[gl_VertexID % 6]",
    finish: "local = corner;",
    inside: "local",
  },
};

export function makeVertexShader(primitive: Primitive): string {
  return `#version 300 es
precision highp float;
precision highp sampler2D;

uniform sampler2D oldPlaces;
uniform sampler2D newPlaces;
uniform sampler2D marks;
uniform float mixRatio;
uniform float scale;
uniform vec2 offset;
uniform vec2 viewport;

${PARTS[primitive].declare}
flat out float side;
flat out vec3 color;
flat out int shape;
flat out float opacity;

${SNAP_SIDE_GLSL}
void main() {
  int slot = ${PARTS[primitive].slot};
  ivec2 texel = ivec2(slot % ${TEXTURE_WIDTH}, slot / ${TEXTURE_WIDTH});
  vec4 place = mix(texelFetch(oldPlaces, texel, 0), texelFetch(newPlaces, texel, 0), mixRatio);
  vec4 mark = texelFetch(marks, texel, 0);
  if (place.z <= 0.0 || mark.z <= 0.0) {
    gl_Position = vec4(2, 2, 2, 1);
    return;
  }
  // Whole device pixels: all squares are equally large and their edges sharp.
  side = snapSide(place.z * scale);
  vec2 origin = place.xy * scale + offset;
  if (mixRatio >= 1.0) origin = round(origin);
  vec2 corner = ${PARTS[primitive].corner} * side;
  vec2 ratio = (origin + corner) / viewport;
  gl_Position = vec4(ratio.x * 2.0 - 1.0, 1.0 - ratio.y * 2.0, 0, 1);
  int packed24 = int(mark.x);
  color = vec3(packed24 >> 16, (packed24 >> 8) & 255, packed24 & 255) / 255.0;
  shape = int(mark.y);
  opacity = mark.z;
  ${PARTS[primitive].finish}
}
`;
}

export function makeFragmentShader(primitive: Primitive): string {
  return `#version 300 es
precision highp float;

uniform float pixelRatio;

${primitive === "quad" ? "in vec2 local;" : ""}
flat in float side;
flat in vec3 color;
flat in int shape;
flat in float opacity;

out vec4 result;

/** Below this side, in device pixels, there is no inside to tell from a border. */
const float SMALLEST_DETAILED = 5.0;

float roundedCover(vec2 local) {
  float radius = min(side * 0.16, 4.0 * pixelRatio);
  vec2 corner = abs(local - side * 0.5) - (side * 0.5 - radius);
  float outside = length(max(corner, 0.0)) - radius;
  return clamp(0.5 - outside, 0.0, 1.0);
}

bool isHatch(vec2 local) {
  float period = max(3.0 * pixelRatio, floor(side * 0.28));
  return mod(local.x + local.y, period) < period * 0.42;
}

bool isDash(vec2 local) {
  float period = max(4.0 * pixelRatio, side / 3.0);
  return mod(local.x + local.y + period * 0.25, period) < period * 0.6;
}

/** Two strokes from corner to corner, left out of the square. */
float crossCover(vec2 local) {
  float width = max(0.7 * pixelRatio, side * 0.06);
  vec2 inside = min(local, side - local);
  float apart = min(abs(local.x - local.y), abs(local.x + local.y - side)) * 0.7071;
  return min(inside.x, inside.y) < side * 0.26 ? 0.0 : clamp(width - apart + 0.5, 0.0, 1.0);
}

float shapeCover(vec2 local, bool isBorder) {
  switch (shape) {
    case ${SHAPES.free}: return isBorder ? 1.0 : 0.0;
    case ${SHAPES.stale}: return isBorder ? 1.0 : isHatch(local) ? 0.8 : 0.0;
    case ${SHAPES.requested}: return isBorder && isDash(local) ? 1.0 : 0.0;
    case ${SHAPES.requestedValue}: return isBorder ? (isDash(local) ? 1.0 : 0.0) : 0.86;
    case ${SHAPES.out}: return 1.0 - crossCover(local);
    case ${SHAPES.missing}: return isHatch(local) ? 1.0 : 0.0;
    default: return 1.0;
  }
}

void main() {
  float cover;
  if (side < SMALLEST_DETAILED) {
    bool isSolid = shape == ${SHAPES.filled} || shape == ${SHAPES.requestedValue} || shape == ${SHAPES.out};
    cover = isSolid ? 1.0 : 0.45;
  } else {
    vec2 here = ${PARTS[primitive].inside};
    float border = max(1.0, round(pixelRatio * min(1.5, side * 0.05)));
    vec2 inside = min(here, side - here);
    cover = shapeCover(here, min(inside.x, inside.y) < border) * roundedCover(here);
  }
  float alpha = cover * opacity;
  if (alpha <= 0.0) discard;
  result = vec4(color * alpha, alpha);
}
`;
}
