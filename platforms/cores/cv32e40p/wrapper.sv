// CV32E40P without FPU and PULP extensions, with the ports that covp's harness expects.

// The clock is never gated: no state changes while the core sleeps, and simulation is faster.
module cv32e40p_clock_gate (
    input  logic clk_i,
    input  logic en_i,
    input  logic scan_cg_en_i,
    output logic clk_o
);
  assign clk_o = clk_i;
endmodule

module covp_core (
`include "covp_ports.svh"
);
  cv32e40p_core #(
      .NUM_MHPMCOUNTERS(1)
  ) core (
      .clk_i              (clk_i),
      .rst_ni             (rst_ni),
      .pulp_clock_en_i    (1'b1),
      .scan_cg_en_i       (1'b0),
      .boot_addr_i        (boot_i),
      .mtvec_addr_i       (boot_i),
      .dm_halt_addr_i     (32'h0),
      .hart_id_i          (32'h0),
      .dm_exception_addr_i(32'h0),
      .instr_req_o        (fetch_req_o),
      .instr_gnt_i        (fetch_gnt_i),
      .instr_rvalid_i     (fetch_rvalid_i),
      .instr_addr_o       (fetch_addr_o),
      .instr_rdata_i      (fetch_rdata_i),
      .data_req_o         (data_req_o),
      .data_gnt_i         (data_gnt_i),
      .data_rvalid_i      (data_rvalid_i),
      .data_we_o          (data_we_o),
      .data_be_o          (data_be_o),
      .data_addr_o        (data_addr_o),
      .data_wdata_o       (data_wdata_o),
      .data_rdata_i       (data_rdata_i),
      .apu_busy_o         (),
      .apu_req_o          (),
      .apu_gnt_i          (1'b0),
      .apu_operands_o     (),
      .apu_op_o           (),
      .apu_flags_o        (),
      .apu_rvalid_i       (1'b0),
      .apu_result_i       (32'h0),
      .apu_flags_i        ('0),
      .irq_i              ({20'h0, irq_i, 11'h0}),
      .irq_ack_o          (),
      .irq_id_o           (),
      .debug_req_i        (1'b0),
      .debug_havereset_o  (),
      .debug_running_o    (),
      .debug_halted_o     (),
      .fetch_enable_i     (1'b1),
      .core_sleep_o       (sleep_o)
  );

  // an instruction that minstret counts leaves the ID stage
  assign retire_o = core.id_stage_i.minstret;
  assign retire_pc_o = core.pc_id;

  assign trap_o = core.csr_save_cause && !core.csr_cause[5];
  assign trap_cause_o = {27'h0, core.csr_cause[4:0]};
  assign trap_pc_o = core.cs_registers_i.exception_pc;

  assign sp_o = core.id_stage_i.register_file_i.mem[2];
  assign ra_o = core.id_stage_i.register_file_i.mem[1];

  // accesses are made in the EX stage
  always_ff @(posedge clk_i) if (retire_o) data_pc_o <= retire_pc_o;
endmodule
