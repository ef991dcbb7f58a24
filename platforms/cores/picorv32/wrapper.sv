// PicoRV32 with fast multiplier, divider, barrel shifter and compressed instructions, with the ports
// that covp's harness expects. It has neither standard interrupts nor a trap vector.

module covp_core (
`include "covp_ports.svh"
);
  logic valid, instr, pcpi_valid, no_trap_vector, is_misaligned, loads_misaligned, stores_misaligned;
  logic [31:0] address, pcpi_insn, target;
  logic [3:0] strobes;

  picorv32 #(
      .BARREL_SHIFTER (1),
      .COMPRESSED_ISA (1),
      .ENABLE_PCPI    (1),
      .ENABLE_FAST_MUL(1),
      .ENABLE_DIV     (1),
      .PROGADDR_RESET (32'h7ffff000)  // boot_i: covp.device.rtl.device boots there
  ) core (
      .clk         (clk_i),
      .resetn      (rst_ni),
      .trap        (trap_o),
      .mem_valid   (valid),
      .mem_instr   (instr),
      .mem_ready   (fetch_ack_i || data_ack_i),
      .mem_addr    (address),
      .mem_wdata   (data_wdata_o),
      .mem_wstrb   (strobes),
      .mem_rdata   (instr ? fetch_rdata_i : data_rdata_i),
      .mem_la_read (),
      .mem_la_write(),
      .mem_la_addr (),
      .mem_la_wdata(),
      .mem_la_wstrb(),
      .pcpi_valid  (pcpi_valid),
      .pcpi_insn   (pcpi_insn),
      .pcpi_rs1    (),
      .pcpi_rs2    (),
      .pcpi_wr     (1'b0),
      .pcpi_rd     (32'h0),
      .pcpi_wait   (1'b0),
      .pcpi_ready  (no_trap_vector),
      .irq         (32'h0),
      .eoi         (),
      .trace_valid (),
      .trace_data  ()
  );
  assign fetch_req_o = valid && instr;
  assign fetch_addr_o = address;
  assign data_req_o = valid && !instr;
  assign data_addr_o = address;
  assign data_we_o = |strobes;
  assign data_be_o = data_we_o ? strobes : 4'hf;
  assign sleep_o = 1'b0;

  // the start-up code of every RISC-V sets mtvec: here that does nothing
  assign no_trap_vector = pcpi_valid && pcpi_insn[31:20] == 12'h305 && pcpi_insn[14:0] == 15'h1073;

  // an instruction that count_instr counts begins
  assign target = core.latched_stalu ? core.alu_out_q : core.reg_out;
  assign retire_o = core.launch_next_insn;
  assign retire_pc_o = core.latched_branch && core.latched_store ? target & ~1 : core.reg_next_pc;

  // the core traps after such an access, when it no longer says of which kind it was
  assign is_misaligned = core.mem_wordsize == 0 && core.reg_op1[1:0] != 0 ||
      core.mem_wordsize == 1 && core.reg_op1[0];
  always_ff @(posedge clk_i) begin
    loads_misaligned <= rst_ni && (loads_misaligned || core.mem_do_rdata && is_misaligned);
    stores_misaligned <= rst_ni && (stores_misaligned || core.mem_do_wdata && is_misaligned);
  end

  assign data_pc_o = core.reg_pc;
  assign trap_pc_o = core.reg_pc;
  assign trap_cause_o = loads_misaligned ? 4 : stores_misaligned ? 6 : core.instr_ecall_ebreak ? 3 : 2;
  assign sp_o = core.cpuregs[2];
  assign ra_o = core.cpuregs[1];
endmodule
