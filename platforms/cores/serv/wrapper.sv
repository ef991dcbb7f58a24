// SERV, the bit-serial core, with CSRs and without multiplication, with the ports that covp's
// harness expects. Its only interrupt is the timer's; what it does not know it does not refuse.

module covp_core (
`include "covp_ports.svh"
);
  logic data_cyc, is_fence;

  serv_rf_top #(
      .RESET_PC(32'h7ffff000)  // boot_i: covp.device.rtl.device boots there
  ) core (
      .clk         (clk_i),
      .i_rst       (!rst_ni),
      .i_timer_irq (1'b0),
      .o_ibus_adr  (fetch_addr_o),
      .o_ibus_cyc  (fetch_req_o),
      .i_ibus_rdt  (fetch_rdata_i),
      .i_ibus_ack  (fetch_ack_i),
      .o_dbus_adr  (data_addr_o),
      .o_dbus_dat  (data_wdata_o),
      .o_dbus_sel  (data_be_o),
      .o_dbus_we   (data_we_o),
      .o_dbus_cyc  (data_cyc),
      .i_dbus_rdt  (data_rdata_i),
      .i_dbus_ack  (is_fence ? data_cyc : data_ack_i),
      .o_ext_rs1   (),
      .o_ext_rs2   (),
      .o_ext_funct3(),
      .i_ext_rd    (32'h0),
      .i_ext_ready (1'b0),
      .o_mdu_valid ()
  );
  assign sleep_o = 1'b0;

  // FENCE loads from some address: any memory answers that
  always_ff @(posedge clk_i) if (fetch_req_o && fetch_ack_i) is_fence <= fetch_rdata_i[6:2] == 5'h3;
  assign data_req_o = data_cyc && !is_fence;

  // an instruction begins; the one before it is over
  assign retire_o = fetch_req_o && fetch_ack_i;
  assign retire_pc_o = fetch_addr_o;
  always_ff @(posedge clk_i) if (retire_o) data_pc_o <= fetch_addr_o;

  assign trap_o = core.cpu.trap && core.cpu.cnt_done;
  assign trap_pc_o = data_pc_o;
  assign trap_cause_o = core.cpu.e_op ? (core.cpu.ebreak ? 3 : 11) :
      core.cpu.branch_op ? 0 : data_we_o ? 6 : 4;

  // registers lie in pieces of two bits
  for (genvar i = 0; i < 16; i++) begin : gen_registers
    assign sp_o[2*i+:2] = core.rf_ram.memory[2*16+i];
    assign ra_o[2*i+:2] = core.rf_ram.memory[1*16+i];
  end
endmodule
