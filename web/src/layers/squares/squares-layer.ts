// All units in one draw call on one WebGL2 canvas. Owns the GL context and its textures; knows nothing of React, of units
// or of what colors mean. Why not deck.gl: docs/design/overview.md.

import type { Marks, Places, Projection } from "./marks.ts";
import { FRAGMENT_SHADER, VERTEX_SHADER } from "./shaders.ts";
import { carryPlaces, countTextureRows, mixTexels, packMarks, packPlaces, TEXTURE_WIDTH } from "./texels.ts";

export interface Frame extends Projection {
  /** Size of the canvas in page pixels, and device pixels per page pixel. */
  readonly width: number;
  readonly height: number;
  readonly pixelRatio: number;
  /** How much of the flight from the old places to the new ones is done, 0–1. */
  readonly flown: number;
}

const TEXTURES = ["oldPlaces", "newPlaces", "marks"] as const;
type TextureName = (typeof TEXTURES)[number];

const UNIFORMS = ["mixRatio", "scale", "offset", "viewport", "pixelRatio"] as const;
type UniformName = (typeof UNIFORMS)[number];

interface Resources {
  readonly program: WebGLProgram;
  readonly textures: Readonly<Record<TextureName, WebGLTexture>>;
  readonly uniforms: Readonly<Record<UniformName, WebGLUniformLocation | null>>;
}

export class SquaresLayer {
  readonly #gl: WebGL2RenderingContext;
  readonly #resources: Resources;
  #old: Float32Array = new Float32Array();
  #new: Float32Array = new Float32Array();
  #slots: ReadonlyMap<string, number> = new Map();
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
    this.setPlaces({ x: new Float32Array(), y: new Float32Array(), size: new Float32Array() }, []);
  }

  /** `names`: of each slot, to find the same unit again when slots shift. The flight starts from where squares are now. */
  setPlaces(places: Places, names: readonly string[]): void {
    const current = this.#flown < 1 ? mixTexels(this.#old, this.#new, this.#flown) : this.#new;
    this.#new = packPlaces(places);
    this.#old = carryPlaces(current, this.#slots, names, this.#new);
    this.#slots = new Map(names.map((name, slot) => [name, slot]));
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
    const { uniforms } = this.#resources;
    this.#flown = frame.flown;
    const width = gl.canvas.width;
    const height = gl.canvas.height;
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform1f(uniforms.mixRatio, frame.flown);
    gl.uniform1f(uniforms.scale, frame.scale * frame.pixelRatio);
    gl.uniform2f(uniforms.offset, frame.offsetX * frame.pixelRatio, frame.offsetY * frame.pixelRatio);
    gl.uniform2f(uniforms.viewport, width, height);
    gl.uniform1f(uniforms.pixelRatio, frame.pixelRatio);
    gl.drawArrays(gl.TRIANGLES, 0, this.#slotCount * 6);
  }

  dispose(): void {
    const { program, textures } = this.#resources;
    for (const name of TEXTURES) this.#gl.deleteTexture(textures[name]);
    this.#gl.deleteProgram(program);
  }

  #upload(name: TextureName, texels: Float32Array): void {
    const gl = this.#gl;
    const rows = countTextureRows(texels.length / 4);
    gl.activeTexture(gl.TEXTURE0 + TEXTURES.indexOf(name));
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, TEXTURE_WIDTH, rows, 0, gl.RGBA, gl.FLOAT, texels);
  }
}

function createResources(gl: WebGL2RenderingContext): Resources {
  const program = linkProgram(gl);
  // biome-ignore lint/correctness/useHookAtTopLevel: WebGL's own name; the context has this one program for good
  gl.useProgram(program);
  const locate = (name: UniformName) => gl.getUniformLocation(program, name);
  const createTexture = (name: TextureName) => {
    const unit = TEXTURES.indexOf(name);
    const texture = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    // Float textures cannot be filtered, and need not be: texels are fetched one by one.
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.uniform1i(gl.getUniformLocation(program, name), unit);
    return texture;
  };
  return {
    program,
    textures: {
      oldPlaces: createTexture("oldPlaces"),
      newPlaces: createTexture("newPlaces"),
      marks: createTexture("marks"),
    },
    uniforms: {
      mixRatio: locate("mixRatio"),
      scale: locate("scale"),
      offset: locate("offset"),
      viewport: locate("viewport"),
      pixelRatio: locate("pixelRatio"),
    },
  };
}

function linkProgram(gl: WebGL2RenderingContext): WebGLProgram {
  const program = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, VERTEX_SHADER],
    [gl.FRAGMENT_SHADER, FRAGMENT_SHADER],
  ] as const) {
    const shader = gl.createShader(kind);
    if (shader === null) throw new Error("The graphics context was lost");
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    gl.deleteShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost()) {
      throw new Error(`A shader does not compile: ${gl.getShaderInfoLog(shader)}`);
    }
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new Error(`The shaders do not link: ${gl.getProgramInfoLog(program)}`);
  }
  return program;
}
