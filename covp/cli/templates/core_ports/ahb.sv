  // TODO: AHB-Lite: HTRANS[1], HADDR, HWRITE, HSIZE and, a cycle later, HWDATA; ready is HREADY, rdata HRDATA
  assign fetch_req_o = 1'b0;  // fetch_ready_i, fetch_rdata_i
  assign fetch_addr_o = 32'h0;
  assign data_req_o = 1'b0;  // data_ready_i, data_rdata_i
  assign data_addr_o = 32'h0;
  assign data_we_o = 1'b0;
  assign data_size_o = 3'h0;
  assign data_wdata_o = 32'h0;
