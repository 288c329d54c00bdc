// Draws the visible spans and bands of a Marey graph on one WebGL2 canvas, in two draw calls. Owns the GL context and
// its textures; knows nothing of React, traces or the meaning of colors.

import { linkProgram } from "../link-program.ts";
import type { BandMarks, MareyFrame, RowPlaces, SpanMarks } from "./marks.ts";
import { BAND_FRAGMENT_SHADER, BAND_VERTEX_SHADER, SPAN_FRAGMENT_SHADER, SPAN_VERTEX_SHADER } from "./shaders.ts";
import {
  countTextureRows,
  packBandMarks,
  packBandPlaces,
  packRows,
  packSpanMarks,
  packSpanPlaces,
  TEXTURE_WIDTH,
} from "./texels.ts";
import { findRows, findSlots, indexSpans, orderBands, type RowSlots, type Stretch } from "./visible.ts";

const TEXTURES = ["rows", "spanPlaces", "spanMarks", "bandPlaces", "bandMarks"] as const;
type TextureName = (typeof TEXTURES)[number];

const UNIFORMS = ["scale", "offset", "viewport", "pixelRatio", "lit"] as const;
type UniformName = (typeof UNIFORMS)[number];

interface Program {
  readonly program: WebGLProgram;
  readonly uniforms: Readonly<Record<UniformName, WebGLUniformLocation | null>>;
}

const CORNERS_PER_QUAD = 4;
/** Two triangles; a corner that both have is computed once. */
const QUAD = [0, 1, 2, 2, 1, 3];
const BYTES_PER_INDEX = 4;
const NOTHING_LIT = -1;
const NO_ROWS: RowPlaces = { top: new Float32Array(0), height: new Float32Array(0) };
const NO_SLOTS: RowSlots = { first: new Uint32Array(1), reaching: new Uint32Array(1) };

export class MareyLayer {
  readonly #gl: WebGL2RenderingContext;
  readonly #textures: Readonly<Record<TextureName, WebGLTexture>>;
  readonly #spans: Program;
  readonly #bands: Program;
  readonly #quads: WebGLBuffer;
  #quadCount = 0;
  #rows: RowPlaces = NO_ROWS;
  #spanSlots: RowSlots = NO_SLOTS;
  #bandSlots: RowSlots = NO_SLOTS;

  /** Throws where the browser has no WebGL2. */
  constructor(canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", { antialias: false, depth: false, premultipliedAlpha: true });
    if (gl === null) throw new Error("This browser has no WebGL2");
    this.#gl = gl;
    this.#textures = createTextures(gl);
    this.#bands = createProgram(gl, BAND_VERTEX_SHADER, BAND_FRAGMENT_SHADER, "bandPlaces", "bandMarks");
    this.#spans = createProgram(gl, SPAN_VERTEX_SHADER, SPAN_FRAGMENT_SHADER, "spanPlaces", "spanMarks");
    this.#quads = gl.createBuffer();
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.#quads);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  setRows(rows: RowPlaces): void {
    this.#rows = rows;
    this.#upload("rows", packRows(rows));
  }

  /** Marks come row by row. */
  setSpans(spans: SpanMarks): void {
    this.#spanSlots = indexSpans(spans);
    this.#makeQuads(spans.count);
    this.#upload("spanPlaces", packSpanPlaces(spans));
    this.#upload("spanMarks", packSpanMarks(spans));
  }

  setBands(bands: BandMarks): void {
    const ordered = orderBands(bands);
    this.#bandSlots = ordered;
    this.#makeQuads(bands.count);
    this.#upload("bandPlaces", packBandPlaces(bands, ordered.order));
    this.#upload("bandMarks", packBandMarks(bands, ordered.order));
  }

  /** Only spans and bands on visible rows. */
  draw(frame: MareyFrame): void {
    const gl = this.#gl;
    gl.viewport(0, 0, gl.canvas.width, gl.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const height = gl.canvas.height / frame.pixelRatio;
    const [first, last] = findRows(this.#rows, -frame.offsetY, height - frame.offsetY);
    this.#drawQuads(this.#bands, findSlots(this.#bandSlots, first, last), frame);
    this.#drawQuads(this.#spans, findSlots(this.#spanSlots, first, last), frame);
  }

  dispose(): void {
    for (const name of TEXTURES) this.#gl.deleteTexture(this.#textures[name]);
    for (const { program } of [this.#spans, this.#bands]) this.#gl.deleteProgram(program);
    this.#gl.deleteBuffer(this.#quads);
  }

  /** Corners of at least `quads` quads, in the order of their triangles. */
  #makeQuads(count: number): void {
    if (count <= this.#quadCount) return;
    this.#quadCount = Math.max(count, 2 * this.#quadCount);
    const corners = new Uint32Array(this.#quadCount * QUAD.length);
    for (let at = 0; at < corners.length; at += 1) {
      corners[at] = Math.floor(at / QUAD.length) * CORNERS_PER_QUAD + (QUAD[at % QUAD.length] ?? 0);
    }
    this.#gl.bufferData(this.#gl.ELEMENT_ARRAY_BUFFER, corners, this.#gl.STATIC_DRAW);
  }

  #drawQuads({ program, uniforms }: Program, [from, to]: Stretch, frame: MareyFrame): void {
    if (to <= from) return;
    const gl = this.#gl;
    const { pixelRatio, scale, offsetX, offsetY, lit } = frame;
    // biome-ignore lint/correctness/useHookAtTopLevel: WebGL's own name
    gl.useProgram(program);
    gl.uniform1f(uniforms.scale, scale * pixelRatio);
    gl.uniform2f(uniforms.offset, offsetX * pixelRatio, offsetY * pixelRatio);
    gl.uniform2f(uniforms.viewport, gl.canvas.width, gl.canvas.height);
    gl.uniform1f(uniforms.pixelRatio, pixelRatio);
    gl.uniform1f(uniforms.lit, lit ?? NOTHING_LIT);
    const count = (to - from) * QUAD.length;
    gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_INT, from * QUAD.length * BYTES_PER_INDEX);
  }

  #upload(name: TextureName, texels: Float32Array): void {
    const gl = this.#gl;
    gl.activeTexture(gl.TEXTURE0 + TEXTURES.indexOf(name));
    gl.texImage2D(
      gl.TEXTURE_2D,
      0,
      gl.RGBA32F,
      TEXTURE_WIDTH,
      countTextureRows(texels.length / 4),
      0,
      gl.RGBA,
      gl.FLOAT,
      texels,
    );
  }
}

function createTextures(gl: WebGL2RenderingContext): Readonly<Record<TextureName, WebGLTexture>> {
  const create = (name: TextureName) => {
    const texture = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + TEXTURES.indexOf(name));
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    return texture;
  };
  return {
    rows: create("rows"),
    spanPlaces: create("spanPlaces"),
    spanMarks: create("spanMarks"),
    bandPlaces: create("bandPlaces"),
    bandMarks: create("bandMarks"),
  };
}

function createProgram(
  gl: WebGL2RenderingContext,
  vertex: string,
  fragment: string,
  places: TextureName,
  marks: TextureName,
): Program {
  const program = linkProgram(gl, vertex, fragment);
  const locate = (name: string) => gl.getUniformLocation(program, name);
  // biome-ignore lint/correctness/useHookAtTopLevel: WebGL's own name
  gl.useProgram(program);
  gl.uniform1i(locate("rows"), TEXTURES.indexOf("rows"));
  gl.uniform1i(locate("places"), TEXTURES.indexOf(places));
  gl.uniform1i(locate("marks"), TEXTURES.indexOf(marks));
  return {
    program,
    uniforms: {
      scale: locate("scale"),
      offset: locate("offset"),
      viewport: locate("viewport"),
      pixelRatio: locate("pixelRatio"),
      lit: locate("lit"),
    },
  };
}
