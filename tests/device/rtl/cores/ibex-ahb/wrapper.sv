// Ibex with AHB-Lite ports: an OBI request is granted when HREADY ends the transfer before it, and HREADY ends its
// own. Three bytes of a word are no transfer of AHB: misaligned words do not work.

module prim_buf #(
    parameter int Width = 1
) (
    input  logic [Width-1:0] in_i,
    output logic [Width-1:0] out_o
);
  assign out_o = in_i;
endmodule

module covp_core
  import ibex_pkg::*;
#(
    parameter int MULTIPLIER = 3,  // ibex_pkg::rv32m_e: 2 fast, 3 single cycle
    parameter bit BRANCH_TARGET_ALU = 1,
    parameter bit WRITEBACK_STAGE = 1
) (
`include "covp_ports.svh"
);
  logic [4:0] raddr_a, raddr_b, waddr;
  logic [31:0] rdata_a, rdata_b, wdata, result;
  logic we, irq_pending, busy_q, fetch_phase, data_phase;
  logic [31:0] address;
  logic [3:0] be;
  ibex_mubi_t busy;

  logic [IC_TAG_SIZE-1:0] no_tags [IC_NUM_WAYS];
  logic [IC_LINE_SIZE-1:0] no_lines [IC_NUM_WAYS];
  assign no_tags = '{default: '0};
  assign no_lines = '{default: '0};

  ibex_core #(
      .RV32M          (rv32m_e'(MULTIPLIER)),
      .BranchTargetALU(BRANCH_TARGET_ALU),
      .WritebackStage (WRITEBACK_STAGE)
  ) core (
      .clk_i                 (clk_i),
      .rst_ni                (rst_ni),
      .hart_id_i             (32'h0),
      .boot_addr_i           (boot_i),
      .instr_req_o           (fetch_req_o),
      .instr_gnt_i           (fetch_ready_i),
      .instr_rvalid_i        (fetch_phase && fetch_ready_i),
      .instr_addr_o          (fetch_addr_o),
      .instr_rdata_i         (fetch_rdata_i),
      .instr_err_i           (1'b0),
      .data_req_o            (data_req_o),
      .data_gnt_i            (data_ready_i),
      .data_rvalid_i         (data_phase && data_ready_i),
      .data_we_o             (data_we_o),
      .data_be_o             (be),
      .data_addr_o           (address),
      .data_wdata_o          (wdata),
      .data_rdata_i          (data_rdata_i),
      .data_err_i            (1'b0),
      .dummy_instr_id_o      (),
      .dummy_instr_wb_o      (),
      .rf_raddr_a_o          (raddr_a),
      .rf_raddr_b_o          (raddr_b),
      .rf_waddr_wb_o         (waddr),
      .rf_we_wb_o            (we),
      .rf_wdata_wb_ecc_o     (result),
      .rf_rdata_a_ecc_i      (rdata_a),
      .rf_rdata_b_ecc_i      (rdata_b),
      .ic_tag_req_o          (),
      .ic_tag_write_o        (),
      .ic_tag_addr_o         (),
      .ic_tag_wdata_o        (),
      .ic_tag_rdata_i        (no_tags),
      .ic_data_req_o         (),
      .ic_data_write_o       (),
      .ic_data_addr_o        (),
      .ic_data_wdata_o       (),
      .ic_data_rdata_i       (no_lines),
      .ic_scr_key_valid_i    (1'b1),
      .ic_scr_key_req_o      (),
      .irq_software_i        (1'b0),
      .irq_timer_i           (1'b0),
      .irq_external_i        (irq_i),
      .irq_fast_i            (15'h0),
      .irq_nm_i              (1'b0),
      .irq_pending_o         (irq_pending),
      .debug_req_i           (1'b0),
      .crash_dump_o          (),
      .double_fault_seen_o   (),
      .fetch_enable_i        (IbexMuBiOn),
      .alert_minor_o         (),
      .alert_major_internal_o(),
      .alert_major_bus_o     (),
      .core_busy_o           (busy)
  );

  ibex_register_file_ff registers (
      .clk_i           (clk_i),
      .rst_ni          (rst_ni),
      .test_en_i       (1'b0),
      .dummy_instr_id_i(1'b0),
      .dummy_instr_wb_i(1'b0),
      .raddr_a_i       (raddr_a),
      .rdata_a_o       (rdata_a),
      .raddr_b_i       (raddr_b),
      .rdata_b_o       (rdata_b),
      .waddr_a_i       (waddr),
      .wdata_a_i       (result),
      .we_a_i          (we),
      .err_o           ()
  );

  assign data_addr_o = {address[31:2], be[0] ? 2'd0 : be[1] ? 2'd1 : be[2] ? 2'd2 : 2'd3};
  assign data_size_o = be == 4'hf ? 3'd2 : $countones(be) == 2 ? 3'd1 : 3'd0;
  always_ff @(posedge clk_i or negedge rst_ni)
    if (!rst_ni) begin
      fetch_phase <= 1'b0;
      data_phase <= 1'b0;
    end else begin
      if (fetch_ready_i) fetch_phase <= fetch_req_o;
      if (data_ready_i) data_phase <= data_req_o;
      if (data_ready_i) data_wdata_o <= wdata;
    end

  // as ibex_top gates the clock
  always_ff @(posedge clk_i or negedge rst_ni)
    if (!rst_ni) busy_q <= 1'b1;
    else busy_q <= busy[0];
  assign sleep_o = !busy_q && !irq_pending;

  // an instruction that minstret counts leaves the ID stage
  assign retire_o = core.instr_id_done && core.instr_perf_count_id;
  assign retire_pc_o = core.pc_id;

  assign trap_o = core.csr_save_cause && !core.exc_cause.irq_ext && !core.exc_cause.irq_int;
  assign trap_cause_o = {27'h0, core.exc_cause.lower_cause};
  assign trap_pc_o = core.cs_registers_i.exception_pc;

  // accesses are made in the ID stage
  assign data_pc_o = core.pc_id;

  assign sp_o = registers.rf_reg[2];
  assign ra_o = registers.rf_reg[1];
endmodule
