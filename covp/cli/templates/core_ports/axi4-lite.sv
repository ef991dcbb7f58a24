  // TODO: AXI4-Lite: one port for code, one for data; a core with one port for both tells them apart by ARPROT[2]
  assign fetch_arvalid_o = 1'b0;  // fetch_arready_i
  assign fetch_araddr_o = 32'h0;
  assign fetch_rready_o = 1'b1;  // fetch_rvalid_i, fetch_rdata_i
  assign data_arvalid_o = 1'b0;  // data_arready_i
  assign data_araddr_o = 32'h0;
  assign data_rstrb_o = 4'hf;
  assign data_rready_o = 1'b1;  // data_rvalid_i, data_rdata_i
  assign data_awvalid_o = 1'b0;  // data_awready_i
  assign data_awaddr_o = 32'h0;
  assign data_wvalid_o = 1'b0;  // data_wready_i
  assign data_wdata_o = 32'h0;
  assign data_wstrb_o = 4'h0;
  assign data_bready_o = 1'b1;  // data_bvalid_i
