  // TODO: OBI: a request is accepted in the cycle of gnt, its answer comes with rvalid
  assign fetch_req_o = 1'b0;  // fetch_gnt_i, fetch_rvalid_i, fetch_rdata_i
  assign fetch_addr_o = 32'h0;
  assign data_req_o = 1'b0;  // data_gnt_i, data_rvalid_i, data_rdata_i
  assign data_addr_o = 32'h0;
  assign data_we_o = 1'b0;
  assign data_be_o = 4'h0;
  assign data_wdata_o = 32'h0;
