BEGIN TRANSACTION;
CREATE TABLE allocations (
	workload TEXT NOT NULL, 
	unit TEXT NOT NULL, 
	from_at BIGINT NOT NULL, 
	to_at BIGINT, 
	source TEXT NOT NULL, 
	confidence DOUBLE NOT NULL, 
	PRIMARY KEY (workload, unit, from_at)
)
 WITHOUT ROWID

;
INSERT INTO "allocations" VALUES('slurm:4711_3','gpu-017:3/7',1700000720000,1700018000000,'exporter_label',0.9);
CREATE TABLE clusterscape_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT clusterscape_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "clusterscape_version" VALUES('0003');
CREATE TABLE documents (
	kind TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	body TEXT NOT NULL, 
	written_at BIGINT NOT NULL, 
	PRIMARY KEY (kind, "key")
);
INSERT INTO "documents" VALUES('views','mine','{"title":"Mine"}',1700000000000);
CREATE TABLE node_states (
	node TEXT NOT NULL, 
	from_at BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT, 
	PRIMARY KEY (node, from_at)
)
 WITHOUT ROWID

;
INSERT INTO "node_states" VALUES('gpu-017',1700000000000,'drained','row remapping failed – wait for parts');
CREATE TABLE nodes (
	id TEXT NOT NULL, 
	partitions TEXT NOT NULL, 
	machine_type TEXT, 
	state TEXT NOT NULL, 
	reason TEXT, 
	gpu_count BIGINT NOT NULL, 
	cpu_count BIGINT, 
	memory_bytes BIGINT, 
	features TEXT NOT NULL, 
	rack TEXT, 
	driver_version TEXT, 
	seen_at BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "nodes" VALUES('gpu-017','["a100","debug"]','A100-80G','drained','row remapping failed – wait for parts',8,128,2199023255552,'["ib","nvme"]','r3','580.159.03',1700000000000);
CREATE TABLE partitions (
	name TEXT NOT NULL, 
	nodes TEXT NOT NULL, 
	is_up BOOLEAN NOT NULL, 
	is_default BOOLEAN NOT NULL, 
	max_time_s BIGINT, 
	seen_at BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "partitions" VALUES('a100','["gpu-017"]',0,1,3153600000,1700000000000);
CREATE TABLE sources (
	source TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	is_ok BOOLEAN NOT NULL, 
	at BIGINT NOT NULL, 
	node TEXT, 
	message TEXT, 
	hint TEXT, 
	duration_s DOUBLE, 
	PRIMARY KEY (source)
);
INSERT INTO "sources" VALUES('dcgm http://gpu-017:9400/metrics','dcgm',0,1700003600000,'gpu-017','refused','Start dcgm-exporter there.',0.125);
CREATE TABLE units (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	node TEXT, 
	"index" BIGINT, 
	uuid TEXT, 
	machine_type TEXT, 
	memory_bytes BIGINT, 
	power_limit_watts DOUBLE, 
	pci_bus_id TEXT, 
	parent TEXT, 
	mig_profile TEXT, 
	workload TEXT, 
	seen_at BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "units" VALUES('gpu-017:3/7','mig','gpu-017',3,'MIG-4f0e','A100-80G',10737418240,399.95,'00000000:CB:00.0','gpu-017:3','1g.10gb','slurm:4711',1700000000000);
CREATE TABLE violations (
	rule TEXT NOT NULL, 
	workload TEXT NOT NULL, 
	unit TEXT NOT NULL, 
	since BIGINT NOT NULL, 
	until BIGINT, 
	gpus BIGINT NOT NULL, 
	"values" TEXT NOT NULL, 
	PRIMARY KEY (rule, workload, unit, since)
)
 WITHOUT ROWID

;
INSERT INTO "violations" VALUES('idle','slurm:4711_3','gpu-017:3/7',1700000000000,NULL,1,'{"mean(gpu_util_ratio)":0.01}');
CREATE TABLE workload_nodes (
	node TEXT NOT NULL, 
	workload TEXT NOT NULL, 
	PRIMARY KEY (node, workload), 
	FOREIGN KEY(workload) REFERENCES workloads (id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "workload_nodes" VALUES('gpu-017','slurm:4711_3');
INSERT INTO "workload_nodes" VALUES('gpu-018','slurm:4711_3');
CREATE TABLE workloads (
	id TEXT NOT NULL, 
	state TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT, 
	user TEXT, 
	project TEXT, 
	experiment TEXT, 
	partition TEXT, 
	resource_type TEXT, 
	qos TEXT, 
	priority BIGINT, 
	gpus_requested BIGINT NOT NULL, 
	nodes_requested BIGINT, 
	time_limit_s BIGINT, 
	submitted_at BIGINT, 
	eligible_at BIGINT, 
	started_at BIGINT, 
	ended_at BIGINT, 
	expected_start_at BIGINT, 
	pending_reason TEXT, 
	exit_code BIGINT, 
	exit_signal BIGINT, 
	restarts BIGINT NOT NULL, 
	nodes TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	begins_at BIGINT NOT NULL, 
	ends_at BIGINT, 
	search TEXT NOT NULL, 
	seen_at BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "workloads" VALUES('slurm:4711_3','out_of_memory','session','GPT-12 × ablation','mbäcker','nlp','2026-spring','a100','A100-8','long',4294967294,8,1,86400,1700000000000,1700000360000,1700000720000,1700018000000,1700001080000,'Resources',2147483657,9,2,'["gpu-018","gpu-017"]','{"comment":"zweite Runde","wckey":"x"}',1700000000000,1700018000000,'slurm:4711_3
gpt-12 × ablation
mbäcker
nlp
2026-spring',1700000000000);
INSERT INTO "workloads" VALUES('slurm:1','running','job',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,1700003600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'[]','{}',1700003600000,NULL,'slurm:1',1700000000000);
INSERT INTO "workloads" VALUES('slurm:2','running','job','Größe “1”',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,1700007200000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'[]','{}',1700007200000,NULL,'slurm:2
grösse “1”',1700000000000);
CREATE INDEX units_by_node ON units (node);
CREATE INDEX workloads_by_state ON workloads (state);
CREATE INDEX workloads_by_begin ON workloads (begins_at);
CREATE INDEX workloads_by_end ON workloads (ends_at);
CREATE INDEX workloads_by_user ON workloads (user, begins_at);
CREATE INDEX workloads_by_project ON workloads (project, begins_at);
CREATE INDEX workloads_by_partition ON workloads (partition, begins_at);
CREATE INDEX workload_nodes_by_workload ON workload_nodes (workload);
CREATE INDEX allocations_by_unit ON allocations (unit, from_at);
CREATE INDEX allocations_by_begin ON allocations (from_at);
CREATE INDEX allocations_by_end ON allocations (to_at);
CREATE INDEX violations_by_workload ON violations (workload, since);
CREATE INDEX violations_by_end ON violations (until);
COMMIT;
