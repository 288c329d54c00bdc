// Draws all units in one draw call on one WebGL2 canvas. Owns the GL context and its textures; knows nothing of React,
// units or the meaning of colors. Why not deck.gl: docs/design/overview.md.

import { linkProgram } from "../link-program.ts";
import type { Marks, Places, Projection, SlotNames } from "./marks.ts";
import { makeFragmentShader, makeVertexShader, type Primitive } from "./shaders.ts";
import { carryPlaces, countTextureRows, mixTexels, packMarks, packPlaces, TEXTURE_WIDTH } from "./texels.ts";

export interface Frame extends Projection {
  /** Device pixels per page pixel. */
  readonly pixelRatio: number;
  /** How much of the flight from the old places to the new ones is done, 0–1. */
  readonly flown: number;
  /** The slots that can be seen; null: any may be. */
  readonly visible: Uint32Array | null;
}

/**
 * Page pixels by which the canvas is larger than what is seen of it, on each side: a point whose middle lies outside is not
 * drawn at all.
 */
export const OVERSCAN_PX = 8;
/** Squares up to this side, in device pixels, are points; at most twice the overscan. */
const LARGEST_POINT_PX = 16;

const TEXTURES = ["oldPlaces", "newPlaces", "marks"] as const;
type TextureName = (typeof TEXTURES)[number];

const UNIFORMS = ["mixRatio", "scale", "offset", "viewport", "pixelRatio"] as const;
type UniformName = (typeof UNIFORMS)[number];

interface Program {
  readonly program: WebGLProgram;
  readonly uniforms: Readonly<Record<UniformName, WebGLUniformLocation | null>>;
}

interface Resources {
  /** Made when first needed: to compile one takes longer than to draw a picture. */
  readonly programs: Map<Primitive, Program>;
  readonly textures: Readonly<Record<TextureName, WebGLTexture>>;
  readonly indices: WebGLBuffer;
}

const NO_NAMES: SlotNames = { codes: new Uint32Array(), names: [null] };

export class SquaresLayer {
  readonly #gl: WebGL2RenderingContext;
  readonly #resources: Resources;
  #old: Float32Array = new Float32Array();
  #new: Float32Array = new Float32Array();
  #names: SlotNames = NO_NAMES;
  #slotCount = 0;
  #flown = 1;

  /** Throws where the browser has no WebGL2. */
  constructor(canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", { antialias: false, depth: false, premultipliedAlpha: true });
    if (gl === null) throw new Error("This browser has no WebGL2");
    this.#gl = gl;
    this.#resources = createResources(gl);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.setPlaces({ x: new Float32Array(), y: new Float32Array(), size: new Float32Array() }, NO_NAMES);
  }

  /** `names`: to find the same unit again when slots shift. The flight starts from where squares are now. */
  setPlaces(places: Places, names: SlotNames): void {
    const current = this.#flown < 1 ? mixTexels(this.#old, this.#new, this.#flown) : this.#new;
    this.#new = packPlaces(places);
    this.#old = carryPlaces(current, this.#names, names, this.#new);
    this.#names = names;
    this.#slotCount = places.size.length;
    this.#flown = 0;
    this.#upload("oldPlaces", this.#old);
    this.#upload("newPlaces", this.#new);
  }

  setMarks(marks: Marks): void {
    this.#upload("marks", packMarks(marks));
  }

  draw(frame: Frame): void {
    const gl = this.#gl;
    const { width, height } = gl.canvas;
    const { scale, offsetX, offsetY, pixelRatio, flown } = frame;
    // In flight squares come from anywhere; that some of them leave the edge too early is not seen.
    const isPoint = scale * pixelRatio <= LARGEST_POINT_PX || flown < 1;
    const { program, uniforms } = this.#findProgram(isPoint ? "point" : "quad");
    this.#flown = flown;
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    // biome-ignore lint/correctness/useHookAtTopLevel: WebGL's own name
    gl.useProgram(program);
    gl.uniform1f(uniforms.mixRatio, flown);
    gl.uniform1f(uniforms.scale, scale * pixelRatio);
    gl.uniform2f(uniforms.offset, (offsetX + OVERSCAN_PX) * pixelRatio, (offsetY + OVERSCAN_PX) * pixelRatio);
    gl.uniform2f(uniforms.viewport, width, height);
    gl.uniform1f(uniforms.pixelRatio, pixelRatio);
    const mode = isPoint ? gl.POINTS : gl.TRIANGLES;
    const perSlot = isPoint ? 1 : CORNERS_PER_QUAD;
    if (frame.visible === null || flown < 1) gl.drawArrays(mode, 0, this.#slotCount * perSlot);
    else this.#drawSome(mode, listVertices(frame.visible, perSlot));
  }

  /** To be asked whether all that was drawn until now is on the screen's buffer. */
  watchDone(): () => boolean {
    const gl = this.#gl;
    const sync = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    return () => {
      if (sync === null || gl.isContextLost()) return true;
      if (gl.getSyncParameter(sync, gl.SYNC_STATUS) !== gl.SIGNALED) return false;
      gl.deleteSync(sync);
      return true;
    };
  }

  dispose(): void {
    const { programs, textures, indices } = this.#resources;
    for (const name of TEXTURES) this.#gl.deleteTexture(textures[name]);
    for (const { program } of programs.values()) this.#gl.deleteProgram(program);
    this.#gl.deleteBuffer(indices);
  }

  #findProgram(primitive: Primitive): Program {
    const { programs } = this.#resources;
    const program = programs.get(primitive) ?? createProgram(this.#gl, primitive);
    programs.set(primitive, program);
    return program;
  }

  /** The number of a vertex drawn by an index is that index: the shaders need not know. */
  #drawSome(mode: GLenum, vertices: Uint32Array): void {
    const gl = this.#gl;
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, vertices, gl.STREAM_DRAW);
    gl.drawElements(mode, vertices.length, gl.UNSIGNED_INT, 0);
  }

  #upload(name: TextureName, texels: Float32Array): void {
    const gl = this.#gl;
    const rows = countTextureRows(texels.length / 4);
    gl.activeTexture(gl.TEXTURE0 + TEXTURES.indexOf(name));
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, TEXTURE_WIDTH, rows, 0, gl.RGBA, gl.FLOAT, texels);
  }
}

const CORNERS_PER_QUAD = 6;

function listVertices(slots: Uint32Array, perSlot: number): Uint32Array {
  if (perSlot === 1) return slots;
  const vertices = new Uint32Array(slots.length * perSlot);
  for (let at = 0; at < vertices.length; at += 1) {
    vertices[at] = (slots[Math.floor(at / perSlot)] ?? 0) * perSlot + (at % perSlot);
  }
  return vertices;
}

function createResources(gl: WebGL2RenderingContext): Resources {
  const createTexture = (name: TextureName) => {
    const texture = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + TEXTURES.indexOf(name));
    gl.bindTexture(gl.TEXTURE_2D, texture);
    // Float textures cannot be filtered, and need not be: texels are fetched one by one.
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    return texture;
  };
  const indices = gl.createBuffer();
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, indices);
  return {
    programs: new Map(),
    textures: {
      oldPlaces: createTexture("oldPlaces"),
      newPlaces: createTexture("newPlaces"),
      marks: createTexture("marks"),
    },
    indices,
  };
}

function createProgram(gl: WebGL2RenderingContext, primitive: Primitive): Program {
  const program = linkProgram(gl, makeVertexShader(primitive), makeFragmentShader(primitive));
  const locate = (name: UniformName) => gl.getUniformLocation(program, name);
  // biome-ignore lint/correctness/useHookAtTopLevel: WebGL's own name
  gl.useProgram(program);
  TEXTURES.forEach((name, unit) => {
    gl.uniform1i(gl.getUniformLocation(program, name), unit);
  });
  return {
    program,
    uniforms: {
      mixRatio: locate("mixRatio"),
      scale: locate("scale"),
      offset: locate("offset"),
      viewport: locate("viewport"),
      pixelRatio: locate("pixelRatio"),
    },
  };
}
