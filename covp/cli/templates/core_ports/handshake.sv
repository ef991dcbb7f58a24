  // TODO: a request is held until ack, in whose cycle rdata is there: Wishbone's cyc and stb, PicoRV32's valid
  assign fetch_req_o = 1'b0;  // fetch_ack_i, fetch_rdata_i
  assign fetch_addr_o = 32'h0;
  assign data_req_o = 1'b0;  // data_ack_i, data_rdata_i
  assign data_addr_o = 32'h0;
  assign data_we_o = 1'b0;
  assign data_be_o = 4'h0;
  assign data_wdata_o = 32'h0;
