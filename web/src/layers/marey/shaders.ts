// Shaders of the Marey layer. As in the squares layer there are no attributes: a vertex reads its slot's texels by its own
// number. Edges are smoothed by how much of a pixel they cover, so no multisampling is needed.

import { SPAN_STYLES, TIER_PLACES } from "./marks.ts";
import { MOST_ROWS, TEXTURE_WIDTH, TIER_STEP } from "./texels.ts";

const HEAD = `#version 300 es
precision highp float;
precision highp sampler2D;

uniform sampler2D places;
uniform sampler2D marks;
uniform sampler2D rows;
uniform float scale;
uniform vec2 offset;
uniform vec2 viewport;
uniform float pixelRatio;
uniform float lit;

const vec2 CORNERS[4] = vec2[4](vec2(0, 0), vec2(1, 0), vec2(0, 1), vec2(1, 1));
/** Of what does not stand out, while something does. */
const float QUIET = 0.28;
/** Device pixels beyond the edge of the drawing, where nothing need be exact. */
const float BEYOND = 64.0;

ivec2 texelOf(int slot) {
  return ivec2(slot % ${TEXTURE_WIDTH}, slot / ${TEXTURE_WIDTH});
}

vec3 unpackColor(float value) {
  int packed24 = int(value);
  return vec3(packed24 >> 16, (packed24 >> 8) & 255, packed24 & 255) / 255.0;
}

float place(float ns) {
  return clamp(ns * scale + offset.x, -BEYOND, viewport.x + BEYOND);
}

vec4 toClip(vec2 pixel) {
  vec2 ratio = pixel / viewport;
  return vec4(ratio.x * 2.0 - 1.0, 1.0 - ratio.y * 2.0, 0, 1);
}
`;

const TIER_VECTORS = TIER_PLACES.map(([from, to]) => `vec2(${from.toFixed(3)}, ${to.toFixed(3)})`);

export const SPAN_VERTEX_SHADER = `${HEAD}
const vec2 TIER_PLACES[${TIER_PLACES.length}] = vec2[${TIER_PLACES.length}](${TIER_VECTORS.join(", ")});

out vec2 local;
flat out vec2 size;
/** Half its size without its round corners, and their radius. */
flat out vec3 core;
flat out vec4 tint;
flat out int style;
flat out float soft;

void main() {
  int slot = gl_VertexID / 4;
  vec4 span = texelFetch(places, texelOf(slot), 0);
  vec4 mark = texelFetch(marks, texelOf(slot), 0);
  vec4 row = texelFetch(rows, texelOf(int(span.z)), 0) * pixelRatio;
  float left = place(span.x);
  float right = place(span.y);
  float width = right - left;
  if (right < 0.0 || left > viewport.x || mark.z <= 0.0) {
    gl_Position = vec4(2, 2, 2, 1);
    return;
  }
  int tier = int(mark.y) / ${TIER_STEP};
  style = int(mark.y) % ${TIER_STEP};
  // A seam tells neighbors apart where there is room for one; nothing is thinner than what an eye can see.
  float seam = width > 5.0 * pixelRatio ? 0.5 * pixelRatio : 0.0;
  left += seam;
  right -= seam;
  float least = 1.25 * pixelRatio;
  if (right - left < least) {
    float middle = (left + right) * 0.5;
    left = middle - least * 0.5;
    right = middle + least * 0.5;
  }
  float height = row.y;
  float top = row.x + offset.y;
  top += height * TIER_PLACES[tier].x;
  height *= TIER_PLACES[tier].y - TIER_PLACES[tier].x;
  if (style == ${SPAN_STYLES.thin}) {
    float thin = max(2.0 * pixelRatio, round(height * 0.2));
    top += (height - thin) * 0.5;
    height = thin;
  }
  size = vec2(right - left, height);
  local = CORNERS[gl_VertexID % 4] * (size + 2.0) - 1.0;
  float radius = min(2.5 * pixelRatio, min(size.x, size.y) * 0.3);
  core = vec3(size * 0.5 - radius, radius);
  tint = vec4(unpackColor(mark.x), 1) * (mark.z * (lit < 0.0 || lit == mark.w ? 1.0 : QUIET));
  soft = min(span.w * scale, size.x * 0.6);
  gl_Position = toClip(vec2(left, top) + local);
}
`;

export const SPAN_FRAGMENT_SHADER = `#version 300 es
precision highp float;

uniform float pixelRatio;

in vec2 local;
flat in vec2 size;
flat in vec3 core;
flat in vec4 tint;
flat in int style;
flat in float soft;

out vec4 result;

void main() {
  vec2 corner = abs(local - size * 0.5) - core.xy;
  float away = length(max(corner, 0.0)) + min(max(corner.x, corner.y), 0.0) - core.z;
  float cover = clamp(0.5 - away, 0.0, 1.0);
  if (style == ${SPAN_STYLES.outline}) {
    cover *= clamp(away + 1.5 * pixelRatio, 0.12, 1.0);
  } else if (style == ${SPAN_STYLES.merged}) {
    // Stripes of one pixel in four: many small ones, too close to tell apart.
    float stripe = mod(gl_FragCoord.x, 4.0 * pixelRatio) < pixelRatio ? 0.55 : 0.86;
    cover *= size.x > 6.0 * pixelRatio ? stripe : 0.86;
    if (soft > 1.0) cover *= mix(1.0, 0.3, smoothstep(size.x - soft, size.x, local.x));
  }
  result = tint * cover;
}
`;

// How far a pixel lies within a band's left and right edge changes evenly over the band: corners say it and the card fills in
// what lies between, so that a pixel, of which there are many more than corners, costs a few operations.
export const BAND_VERTEX_SHADER = `${HEAD}
out vec2 within;
flat out vec4 tint;

/** Of a distance along the row: the share that lies across an edge with this slant. */
float across(float slant) {
  return inversesqrt(1.0 + slant * slant);
}

void main() {
  int slot = gl_VertexID / 4;
  vec4 band = texelFetch(places, texelOf(slot), 0);
  vec4 mark = texelFetch(marks, texelOf(slot), 0);
  int both = int(mark.y);
  vec4 from = texelFetch(rows, texelOf(both / ${MOST_ROWS}), 0) * pixelRatio;
  vec4 to = texelFetch(rows, texelOf(both % ${MOST_ROWS}), 0) * pixelRatio;
  bool isDown = from.x < to.x;
  vec4 upper = isDown ? from : to;
  vec4 lower = isDown ? to : from;
  vec4 times = isDown ? band : band.zwxy;
  // Slants must not bend where an end lies far outside: bands are not clamped.
  vec4 edges = times * scale + offset.x;
  vec2 reach = vec2(upper.x + upper.y, lower.x) + offset.y;
  bool isBeside = max(edges.y, edges.w) < 0.0 || min(edges.x, edges.z) > viewport.x;
  bool isBeyond = reach.y < 0.0 || reach.x > viewport.y;
  if (isBeside || isBeyond || reach.y <= reach.x || mark.z <= 0.0) {
    gl_Position = vec4(2, 2, 2, 1);
    return;
  }
  vec2 corner = CORNERS[gl_VertexID % 4];
  float left = corner.y < 0.5 ? edges.x : edges.z;
  float right = corner.y < 0.5 ? edges.y : edges.w;
  float x = corner.x < 0.5 ? left - 1.5 : right + 1.5;
  vec2 slants = vec2(edges.z - edges.x, edges.w - edges.y) / (reach.y - reach.x);
  within = vec2((x - left) * across(slants.x), (right - x) * across(slants.y)) + 0.5;
  float opacity = mark.z * (lit < 0.0 ? 1.0 : lit == mark.w ? 1.7 : QUIET);
  tint = vec4(unpackColor(mark.x), 1) * opacity;
  gl_Position = toClip(vec2(x, mix(reach.x, reach.y, corner.y)));
}
`;

export const BAND_FRAGMENT_SHADER = `#version 300 es
precision highp float;

in vec2 within;
flat in vec4 tint;

out vec4 result;

void main() {
  vec2 cover = clamp(within, 0.0, 1.0);
  result = tint * (cover.x * cover.y);
}
`;
