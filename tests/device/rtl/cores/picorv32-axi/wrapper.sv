// PicoRV32 behind its AXI4-Lite adapter, whose one port is divided into those of code and data.

module covp_core (
`include "covp_ports.svh"
);
  logic valid, instr, pcpi_valid, no_trap_vector, is_misaligned, loads_misaligned, stores_misaligned;
  logic [31:0] address, pcpi_insn, target;
  logic [3:0] strobes;
  logic ready;
  logic [31:0] wdata, rdata;

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
      .mem_ready   (ready),
      .mem_addr    (address),
      .mem_wdata   (wdata),
      .mem_wstrb   (strobes),
      .mem_rdata   (rdata),
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

  logic arvalid, rready, is_code;
  logic [31:0] araddr;
  logic [2:0] arprot;

  picorv32_axi_adapter adapter (
      .clk            (clk_i),
      .resetn         (rst_ni),
      .mem_axi_awvalid(data_awvalid_o),
      .mem_axi_awready(data_awready_i),
      .mem_axi_awaddr (data_awaddr_o),
      .mem_axi_awprot (),
      .mem_axi_wvalid (data_wvalid_o),
      .mem_axi_wready (data_wready_i),
      .mem_axi_wdata  (data_wdata_o),
      .mem_axi_wstrb  (data_wstrb_o),
      .mem_axi_bvalid (data_bvalid_i),
      .mem_axi_bready (data_bready_o),
      .mem_axi_arvalid(arvalid),
      .mem_axi_arready(is_code ? fetch_arready_i : data_arready_i),
      .mem_axi_araddr (araddr),
      .mem_axi_arprot (arprot),
      .mem_axi_rvalid (fetch_rvalid_i || data_rvalid_i),
      .mem_axi_rready (rready),
      .mem_axi_rdata  (fetch_rvalid_i ? fetch_rdata_i : data_rdata_i),
      .mem_valid      (valid),
      .mem_instr      (instr),
      .mem_ready      (ready),
      .mem_addr       (address),
      .mem_wdata      (wdata),
      .mem_wstrb      (strobes),
      .mem_rdata      (rdata)
  );
  assign is_code = arprot[2];
  assign fetch_arvalid_o = arvalid && is_code;
  assign fetch_araddr_o = araddr;
  assign fetch_rready_o = rready;
  assign data_arvalid_o = arvalid && !is_code;
  assign data_araddr_o = araddr;
  assign data_rstrb_o = 4'hf;
  assign data_rready_o = rready;
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
