    // registers: APB (Arm IHI 0024), without wait states
    input             s_psel,
    input             s_penable,
    input             s_pwrite,
    input      [11:0] s_paddr,
    input      [31:0] s_pwdata,
    output     [31:0] s_prdata,
    output            s_pready,
    // end of ports
    assign write = s_psel && s_penable && s_pwrite;
    assign waddr = s_paddr;
    assign wdata = s_pwdata;
    assign raddr = s_paddr;
    assign s_prdata = rdata;
    assign s_pready = 1'b1;
