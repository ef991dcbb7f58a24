// CV32E40X without atomics, bit manipulation and coprocessor, with the ports that covp's harness expects.

// The clock is never gated: no state changes while the core sleeps, and simulation is faster.
module cv32e40x_clock_gate #(
    parameter LIB = 0
) (
    input  logic clk_i,
    input  logic en_i,
    input  logic scan_cg_en_i,
    output logic clk_o
);
  assign clk_o = clk_i;
endmodule

module covp_core
  import cv32e40x_pkg::*;
(
`include "covp_ports.svh"
);
  if_xif no_coprocessor ();

  cv32e40x_core #(
      .NUM_MHPMCOUNTERS(1)
  ) core (
      .clk_i              (clk_i),
      .rst_ni             (rst_ni),
      .scan_cg_en_i       (1'b0),
      .boot_addr_i        (boot_i),
      .dm_exception_addr_i(32'h0),
      .dm_halt_addr_i     (32'h0),
      .mhartid_i          (32'h0),
      .mimpid_patch_i     (4'h0),
      .mtvec_addr_i       (boot_i),
      .instr_req_o        (fetch_req_o),
      .instr_gnt_i        (fetch_gnt_i),
      .instr_rvalid_i     (fetch_rvalid_i),
      .instr_addr_o       (fetch_addr_o),
      .instr_memtype_o    (),
      .instr_prot_o       (),
      .instr_dbg_o        (),
      .instr_rdata_i      (fetch_rdata_i),
      .instr_err_i        (1'b0),
      .data_req_o         (data_req_o),
      .data_gnt_i         (data_gnt_i),
      .data_rvalid_i      (data_rvalid_i),
      .data_addr_o        (data_addr_o),
      .data_be_o          (data_be_o),
      .data_we_o          (data_we_o),
      .data_wdata_o       (data_wdata_o),
      .data_memtype_o     (),
      .data_prot_o        (),
      .data_dbg_o         (),
      .data_atop_o        (),
      .data_rdata_i       (data_rdata_i),
      .data_err_i         (1'b0),
      .data_exokay_i      (1'b1),
      .mcycle_o           (),
      .xif_compressed_if  (no_coprocessor),
      .xif_issue_if       (no_coprocessor),
      .xif_commit_if      (no_coprocessor),
      .xif_mem_if         (no_coprocessor),
      .xif_mem_result_if  (no_coprocessor),
      .xif_result_if      (no_coprocessor),
      .irq_i              ({20'h0, irq_i, 11'h0}),
      .wu_wfe_i           (1'b0),
      .clic_irq_i         (1'b0),
      .clic_irq_id_i      (5'h0),
      .clic_irq_level_i   (8'h0),
      .clic_irq_priv_i    (2'h0),
      .clic_irq_shv_i     (1'b0),
      .fencei_flush_req_o (),
      .fencei_flush_ack_i (1'b1),
      .debug_req_i        (1'b0),
      .debug_havereset_o  (),
      .debug_running_o    (),
      .debug_halted_o     (),
      .fetch_enable_i     (1'b1),
      .core_sleep_o       (sleep_o)
  );

  // an instruction that minstret counts leaves the WB stage
  assign retire_o = core.ctrl_fsm.mhpmevent.minstret;
  assign retire_pc_o = core.ex_wb_pipe.pc;

  assign trap_o = core.ctrl_fsm.csr_save_cause && !core.ctrl_fsm.csr_cause.irq;
  assign trap_cause_o = {21'h0, core.ctrl_fsm.csr_cause.exception_code};
  assign trap_pc_o = core.ex_wb_pipe.pc;

  // accesses are made in the EX stage
  assign data_pc_o = core.id_ex_pipe.pc;

  assign sp_o = core.register_file_wrapper_i.register_file_i.mem[2];
  assign ra_o = core.register_file_wrapper_i.register_file_i.mem[1];
endmodule
