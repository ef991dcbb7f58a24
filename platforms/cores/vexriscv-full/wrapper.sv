// VexRiscv as LiteX generates it, with the ports that covp's harness expects.

module covp_core (
`include "covp_ports.svh"
);
  logic fetch_cyc, fetch_stb, data_cyc, data_stb;
  logic [29:0] fetch_word, data_word;

  VexRiscv core (
      .externalResetVector   (boot_i),
      .timerInterrupt        (1'b0),
      .softwareInterrupt     (1'b0),
      .externalInterruptArray({31'h0, irq_i}),
`ifdef COVP_CFU
      .CfuPlugin_bus_cmd_valid(cfu_valid_o),
      .CfuPlugin_bus_cmd_ready(cfu_ready_i),
      .CfuPlugin_bus_cmd_payload_function_id(cfu_id_o),
      .CfuPlugin_bus_cmd_payload_inputs_0(cfu_a_o),
      .CfuPlugin_bus_cmd_payload_inputs_1(cfu_b_o),
      .CfuPlugin_bus_rsp_valid(cfu_answers_i),
      .CfuPlugin_bus_rsp_ready(cfu_takes_o),
      .CfuPlugin_bus_rsp_payload_outputs_0(cfu_answer_i),
`endif
      .iBusWishbone_CYC      (fetch_cyc),
      .iBusWishbone_STB      (fetch_stb),
      .iBusWishbone_ACK      (fetch_ack_i),
      .iBusWishbone_WE       (),
      .iBusWishbone_ADR      (fetch_word),
      .iBusWishbone_DAT_MISO (fetch_rdata_i),
      .iBusWishbone_DAT_MOSI (),
      .iBusWishbone_SEL      (),
      .iBusWishbone_ERR      (1'b0),
      .iBusWishbone_CTI      (),
      .iBusWishbone_BTE      (),
      .dBusWishbone_CYC      (data_cyc),
      .dBusWishbone_STB      (data_stb),
      .dBusWishbone_ACK      (data_ack_i),
      .dBusWishbone_WE       (data_we_o),
      .dBusWishbone_ADR      (data_word),
      .dBusWishbone_DAT_MISO (data_rdata_i),
      .dBusWishbone_DAT_MOSI (data_wdata_o),
      .dBusWishbone_SEL      (data_be_o),
      .dBusWishbone_ERR      (1'b0),
      .dBusWishbone_CTI      (),
      .dBusWishbone_BTE      (),
      .clk                   (clk_i),
      .reset                 (!rst_ni)
  );
  assign fetch_req_o = fetch_cyc && fetch_stb;
  assign fetch_addr_o = {fetch_word, 2'b00};
  assign data_req_o = data_cyc && data_stb;
  assign data_addr_o = {data_word, 2'b00};

  assign retire_o = core.lastStageIsFiring;
  assign retire_pc_o = core.lastStagePc;

  assign trap_o = core.CsrPlugin_hadException;
  assign trap_cause_o = {28'h0, core.CsrPlugin_trapCause};
  assign trap_pc_o = core.writeBack_PC;
  assign sp_o = core.RegFilePlugin_regFile[2];
  assign ra_o = core.RegFilePlugin_regFile[1];

`ifdef COVP_DATA_CACHE
  assign data_pc_o = core.writeBack_PC;
`else
  assign data_pc_o = core.memory_PC;
`endif

`ifdef COVP_WFI
  // WFI stays in the execute stage; what is older is over after some cycles
  logic waits, irq_q;
  logic [2:0] quiet;
  assign waits = core.execute_arbitration_isValid && core.execute_ENV_CTRL == 2'b10 &&
      !core.execute_CsrPlugin_wfiWake && !core.memory_arbitration_isValid &&
      !core.writeBack_arbitration_isValid && !data_req_o && irq_i == irq_q;
  always_ff @(posedge clk_i) begin
    irq_q <= irq_i;
    quiet <= waits ? (&quiet ? quiet : quiet + 1) : 0;
  end
  assign sleep_o = waits && &quiet;
`else
  assign sleep_o = 1'b0;
`endif
endmodule
