    // registers: HWPE's control port, the answer a cycle after the request
    input             s_req,
    output            s_gnt,
    input      [11:0] s_add,
    input             s_wen,
    input      [31:0] s_data,
    output reg        s_r_valid,
    output reg [31:0] s_r_data,
    // end of ports
    assign write = s_req && !s_wen;
    assign waddr = s_add;
    assign wdata = s_data;
    assign raddr = s_add;
    assign s_gnt = 1'b1;
    always @(posedge clk) begin
        s_r_valid <= rst_n && s_req;
        s_r_data <= rdata;
    end
