// The client that answers from given values, for tests and for pages without a server. Sends no requests.

import { Problem } from "../base/problem.ts";
import type { Client, LiveListener, LiveVersion } from "./client.ts";

export interface StaticClient extends Client {
  /** Notifies listeners as a server would. */
  announce(version: LiveVersion): void;
  lose(): void;
}

function absent(question: string): () => Promise<never> {
  return () =>
    Promise.reject(new Problem(`The report has no response for ${question}.`, { code: "not_found", status: 404 }));
}

export function createStaticClient(answers: Partial<Client>): StaticClient {
  const listeners = new Set<LiveListener>();
  const client: StaticClient = {
    at: () => client,
    access: {
      session: absent("access.session"),
      signIn: absent("access.signIn"),
      signOut: absent("access.signOut"),
      signOutEverywhere: absent("access.signOutEverywhere"),
      changePassword: absent("access.changePassword"),
      tokens: absent("access.tokens"),
      createToken: absent("access.createToken"),
      revokeToken: absent("access.revokeToken"),
      accounts: absent("access.accounts"),
      addAccount: absent("access.addAccount"),
      changeAccount: absent("access.changeAccount"),
      removeAccount: absent("access.removeAccount"),
      audit: absent("access.audit"),
    },
    rules: {
      list: absent("rules.list"),
      units: absent("rules.units"),
      workload: absent("rules.workload"),
      language: absent("rules.language"),
      read: absent("rules.read"),
      complete: absent("rules.complete"),
      tryOut: absent("rules.tryOut"),
      save: absent("rules.save"),
      remove: absent("rules.remove"),
      order: absent("rules.order"),
    },
    violations: {
      list: absent("violations.list"),
      timeline: absent("violations.timeline"),
      mutes: absent("violations.mutes"),
      mute: absent("violations.mute"),
      unmute: absent("violations.unmute"),
      comments: absent("violations.comments"),
      comment: absent("violations.comment"),
      removeComment: absent("violations.removeComment"),
      alerts: absent("violations.alerts"),
    },
    diagnosis: {
      diagnosis: absent("diagnosis.diagnosis"),
      histograms: absent("diagnosis.histograms"),
      lines: absent("diagnosis.lines"),
      scatter: absent("diagnosis.scatter"),
      events: absent("diagnosis.events"),
    },
    traces: {
      list: absent("traces.list"),
      create: absent("traces.create"),
      putFile: absent("traces.putFile"),
      startImport: absent("traces.startImport"),
      remove: absent("traces.remove"),
      trace: absent("traces.trace"),
      steps: absent("traces.steps"),
      marey: absent("traces.marey"),
      span: absent("traces.span"),
      flowActivity: absent("traces.flowActivity"),
      highlights: absent("traces.highlights"),
      overview: absent("traces.overview"),
      operators: absent("traces.operators"),
      communication: absent("traces.communication"),
      curves: absent("traces.curves"),
      diff: absent("traces.diff"),
      flow: absent("traces.flow"),
    },
    runs: {
      tree: absent("runs.tree"),
      run: absent("runs.run"),
      hang: absent("runs.hang"),
      hangs: absent("runs.hangs"),
      removeRun: absent("runs.removeRun"),
      metrics: absent("runs.metrics"),
      lines: absent("runs.lines"),
      bands: absent("runs.bands"),
      insights: absent("runs.insights"),
      saveInsight: absent("runs.saveInsight"),
      removeInsight: absent("runs.removeInsight"),
    },
    scheduling: {
      queue: absent("scheduling.queue"),
      story: absent("scheduling.story"),
      startWhatIf: absent("scheduling.startWhatIf"),
      whatIf: absent("scheduling.whatIf"),
      stopWhatIf: absent("scheduling.stopWhatIf"),
      wait: absent("scheduling.wait"),
    },
    jobTraces: {
      list: absent("jobTraces.list"),
      upload: absent("jobTraces.upload"),
      remove: absent("jobTraces.remove"),
      describe: absent("jobTraces.describe"),
      predictions: absent("jobTraces.predictions"),
      models: absent("jobTraces.models"),
      reliability: absent("jobTraces.reliability"),
      simulatorOptions: absent("jobTraces.simulatorOptions"),
      simulate: absent("jobTraces.simulate"),
      simulation: absent("jobTraces.simulation"),
      stopSimulation: absent("jobTraces.stopSimulation"),
      removeSimulation: absent("jobTraces.removeSimulation"),
      simulations: absent("jobTraces.simulations"),
    },
    timeline: absent("timeline"),
    waste: absent("waste"),
    cluster: absent("cluster"),
    snapshot: absent("snapshot"),
    tick: absent("tick"),
    workloads: absent("workloads"),
    workload: absent("workload"),
    job: absent("job"),
    usageReport: absent("usageReport"),
    nodes: absent("nodes"),
    node: absent("node"),
    series: absent("series"),
    search: absent("search"),
    sources: absent("sources"),
    unitWaste: absent("unitWaste"),
    unitsFile: absent("unitsFile"),
    views: absent("views"),
    saveView: absent("saveView"),
    removeView: absent("removeView"),
    setStartView: absent("setStartView"),
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    ...answers,
    announce: (version) => {
      for (const listener of listeners) listener.onVersion(version);
    },
    lose: () => {
      for (const listener of listeners) listener.onLost();
    },
  };
  return client;
}
